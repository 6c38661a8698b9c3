"""Find, load, convert and export models, and encode documents with them.

This file imports nothing, so that ``import simlte_st`` does not wait for torch.
"""
