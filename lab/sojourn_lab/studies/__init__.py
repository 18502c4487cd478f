"""Studies: experiments that answer one question each and write a page of tables."""
