# Completes kiln's flags in bash, from the tables that the program itself reads them by.
_kiln()
{
	local word=${COMP_WORDS[COMP_CWORD]}

	COMPREPLY=()
	case ${COMP_WORDS[1]}:$COMP_CWORD in
	*:1)
		[[ $word == -* || ! $word ]] ||
			mapfile -t COMPREPLY < <(compgen -W "collect debuginfo diff fetch help kubectl record serve store" -- "$word"; compgen -f -- "$word")
		;;
	collect:* | fetch:* | record:* | serve:*)
		[[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W "$("$1" "${COMP_WORDS[1]}" --complete 2>/dev/null)" -- "$word")
		return
		;;
	kubectl:2)
		mapfile -t COMPREPLY < <(compgen -W "$("$1" kubectl --complete 2>/dev/null)" -- "$word")
		return
		;;
	kubectl:*)
		mapfile -t COMPREPLY < <(compgen -W "$("$1" kubectl "${COMP_WORDS[2]}" --complete 2>/dev/null)" -- "$word"; compgen -f -- "$word")
		return
		;;
	debuginfo:2)
		mapfile -t COMPREPLY < <(compgen -W "upload list delete" -- "$word")
		return
		;;
	debuginfo:*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("$1" debuginfo --complete 2>/dev/null)" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		return
		;;
	store:2)
		mapfile -t COMPREPLY < <(compgen -W "$("$1" store --complete 2>/dev/null)" -- "$word")
		return
		;;
	store:*)
		return
		;;
	esac
	word=${word/#--/-}
	[[ $word == -* ]] || return
	if [[ ${COMP_WORDS[1]} == diff ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$1" diff --complete 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$("$1" --complete 2>/dev/null)" -- "$word")
}
complete -o default -F _kiln kiln
