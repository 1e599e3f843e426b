"""``hopwatch report --html``: a range as one file that needs no network, no script and no Streamlit."""
