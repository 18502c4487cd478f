"""Run the comparison."""

from sojourn_lab.speed.peers.page import main

main()
