#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders templates with Jinja2 itself: reads [[template, context], ...] as JSON, writes one line per case, the JSON of the text or null."""
import json
import sys

import jinja2

env = jinja2.Environment(undefined=jinja2.StrictUndefined)
for template, context in json.load(sys.stdin):
    try:
        text = env.from_string(template).render(context)
    except Exception:  # a refusal of any kind is all that is compared
        text = None
    print(json.dumps(text))
