"""The script that Streamlit runs on each interaction; it gets the arguments of :func:`show_page` as JSON.

Streamlit puts this folder first on ``sys.path``, so no file here may share its name with another module.
"""

import json
import sys

from simlte_st.page.search_page import show_page

if __name__ == "__main__":  # a process that encodes for it must not show it again
    show_page(**json.loads(sys.argv[1]))
