"""What Streamlit runs for each interaction, with the arguments of :func:`show_page` as JSON.

Streamlit puts the folder of this file before all others that modules are looked for in: no file here may be called as a
module is called elsewhere.
"""

import json
import sys

from simlte_st.page.search_page import show_page

show_page(**json.loads(sys.argv[1]))
