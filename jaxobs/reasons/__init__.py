"""Why it compiled and why the cache missed: facts in, sentences out."""
