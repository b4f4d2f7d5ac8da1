"""The program that a sandbox starts to answer one request of package verify.

    /usr/bin/python3 -I -S -B -X utf8 /opt/airlock/engines/main.py

docs/verify.md describes its requests and answers.
"""

import sys

sys.path.append("/opt/airlock/engines")
sys.path.append("/usr/lib/python3/dist-packages")

from airlock_verify import session

session.main()
