"""Files that may hold up the program: pipes without a reader, full disks, disks that do not answer."""
