#!/bin/sh
# Refuses notes with lines of more than 100 characters.
if grep -nE '^.{101,}$' "$1"; then
    exit 1
fi
