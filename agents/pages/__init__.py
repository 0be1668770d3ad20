"""The pages of storage nodes: the list, registering and changing one, a node with its targets, log and jobs. They hold no rule."""
