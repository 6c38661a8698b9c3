"""What Streamlit runs for each interaction: INDEX, and MODEL where it is given.

Streamlit puts the folder of this file before all others that modules are looked for in: no file here may be called as a
module is called elsewhere.
"""

import sys

from simlte_st.page.search_page import show_page

show_page(*sys.argv[1:])
