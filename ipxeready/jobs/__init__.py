"""Long work as jobs of the control plane: started in a thread of this process, listed, cancelled, ended after a crash.

What the work is, only those above know: they hand in a `Work`, and say with `kinds.recover` how one that lost its
process is ended.
"""
