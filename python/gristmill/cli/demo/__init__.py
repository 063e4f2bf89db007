"""`gristmill demo`: a gigabyte made, sorted, proved and reported, for newcomers.

    command ──▶ steps, from making to comparing ──▶ figures ──▶ screen

What it shows is taken from jobs like any other; only the device's floor is measured for the demo.
"""
