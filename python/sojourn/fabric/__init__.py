"""Networks of switches: files of topologies and flow lists, routes, and traffic between hosts."""
