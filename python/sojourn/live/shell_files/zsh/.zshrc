# Read after .zshenv: the user's, then the prompt.
if [[ -n ${SOJOURN_ZDOTDIR+set} ]]; then export ZDOTDIR=$SOJOURN_ZDOTDIR; else unset ZDOTDIR; fi
if [[ -f ${ZDOTDIR:-$HOME}/.zshrc ]]; then . "${ZDOTDIR:-$HOME}/.zshrc"; fi
_sojourn_prompt() {
    [[ $PS1 == "$SOJOURN_PROMPT"* ]] || PS1=$SOJOURN_PROMPT$PS1
}
# Last, since others may make the prompt anew before each line.
typeset -ga precmd_functions
precmd_functions+=(_sojourn_prompt)
unset SOJOURN_ZSH SOJOURN_ZDOTDIR
