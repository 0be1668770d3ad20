"""The pages of workers, a module for each; they hold no rule: services decide, selectors tell."""
