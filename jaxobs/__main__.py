"""`python -m jaxobs`."""

import sys

from jaxobs.cli import main

sys.exit(main())
