# Read by an interactive zsh inside a link, which finds this directory by ZDOTDIR: first the user's.
if [[ -n ${SOJOURN_ZDOTDIR+set} ]]; then ZDOTDIR=$SOJOURN_ZDOTDIR; else unset ZDOTDIR; fi
if [[ -f ${ZDOTDIR:-$HOME}/.zshenv ]]; then . "${ZDOTDIR:-$HOME}/.zshenv"; fi
# It may have moved the others.
if [[ -n ${ZDOTDIR+set} ]]; then SOJOURN_ZDOTDIR=$ZDOTDIR; else unset SOJOURN_ZDOTDIR; fi
ZDOTDIR=$SOJOURN_ZSH
