"""Commands that are a file each; a command of several files has a folder beside this one."""
