"""Files that may stand in the program's way: pipes without a reader, full disks, disks that do not answer."""
