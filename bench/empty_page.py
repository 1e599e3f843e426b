"""The least that Streamlit can show: what of a page's time is its own."""

import streamlit as st

st.html("<p class='there'>hello</p>")
