"""Results for people and programs.

`document` turns a result into text and Markdown, `render_html` into a page, `to_json` into JSON
with its schema, `csv_exports` into tables, `dataset` into a folder with a card. `sections` make the
document of each kind of result.
"""
