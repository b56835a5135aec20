"""The Streamlit app: pages only, no SQL and no statistics."""
