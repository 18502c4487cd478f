# Read by an interactive fish inside a link, after the user's own.
if functions --query fish_prompt
    functions --copy fish_prompt _sojourn_fish_prompt
    function fish_prompt
        printf %s $SOJOURN_PROMPT
        _sojourn_fish_prompt
    end
end
