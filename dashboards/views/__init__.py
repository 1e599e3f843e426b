"""From what was read to what is shown: texts, colours and points of charts; pure, and without Streamlit."""
