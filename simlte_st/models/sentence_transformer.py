"""The former module of our SentenceTransformer, which pickles made by version 0.2 refer to."""

from simlte_st.models.sentence_transformers import SentenceTransformer as SentenceTransformer
