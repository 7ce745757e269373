"""`python -m remem_gossip.reconcile`: the line-based harness."""

import sys

from remem_gossip.reconcile.harness import main

sys.exit(main())
