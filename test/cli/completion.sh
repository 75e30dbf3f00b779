# Completion, from the tables: bash and zsh offer commands, options and their values; each
# command and option of the tables is there. Help and colours as the terminal asks.
. test/cli/common
stores "$tmp/s.db"

"$FOREWARP" help --completion bash >"$tmp/forewarp.bash"
"$FOREWARP" help --completion zsh >"$tmp/_forewarp"

# offers LINE WORD: after `forewarp LINE`, its last word incomplete, bash offers WORD.
cat >"$tmp/complete.bash" <<'END'
. "$1"
shift
COMP_WORDS=(forewarp "$@")
COMP_CWORD=$(($# ? $# : 1))
_forewarp
printf '%s\n' "${COMPREPLY[@]}"
END
complete_it() { bash "$tmp/complete.bash" "$tmp/forewarp.bash" "$@"; }
offers() {
    want=$1
    shift
    complete_it "$@" | grep -qx -e "$want" && ok "bash: $* -> $want" || not_ok "bash: $* -> $want"
}
offers tune tu
offers report r
offers --strategy tune x.fw --str
offers two-stage tune x.fw --strategy two
offers groups tune x.fw --extra gr
offers import wisdom im
offers two-stage tune x.fw --strategy = two
offers cuda:0 run -d cu
offers exact run --math ""
offers strategies help str
offers boost fit b
offers linear fit l
offers knn eval k
offers loading eval lo
[ -z "$(complete_it fit lo)" ] && ok "bash: loading is of eval alone" || not_ok "bash: loading is of eval alone"
[ -z "$(complete_it report --strategy --budg)" ] && ok "bash: values are not options" ||
    not_ok "bash: values are not options"
[ "$(complete_it emit --be)" = --best ] && ok "bash: only what a command takes" ||
    not_ok "bash: only what a command takes"
[ -z "$(complete_it tune ./a)" ] && ok "bash: files are left to bash" || not_ok "bash: files are left to bash"

for name in $(sed -n 's/^OPTION([^"]*"\([a-z0-9-]*\)".*/\1/p' src/cli/options.def); do
    grep -q -e "--$name\b" "$tmp/forewarp.bash" && grep -q -e "--$name\b" "$tmp/_forewarp" &&
        ok "option $name" || not_ok "option $name"
done
if command -v zsh >/dev/null; then
    passes "zsh reads it" zsh -n "$tmp/_forewarp"
    # _arguments itself says what is wrong with a specification.
    cat >"$tmp/try.zsh" <<'END'
fpath=($1 $fpath)
autoload -U compinit
compinit -u -d $1/dump
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -d $1/dump; PS1=; LISTMAX=0; zstyle ':completion:*' verbose no"
zpty -w z "$2"
zpty -n -w z "$3"$'\t'
out=
for i in {1..150}; do # the answer, and for a while what follows it
    zpty -r -t z line && out+=$line
    [[ $out == *$4* ]] && (( ++found > 10 )) && break
    sleep 0.1
done
print -r -- "$out"
END
    for pair in "forewarp tune --strateg=--strategy" "forewarp repo=report"; do
        timeout 1800 zsh -f "$tmp/try.zsh" "$tmp" "cd $tmp" "${pair%%=*}" "${pair##*=}" >"$tmp/stdout" 2>&1
        grep -qF -e "${pair##*=}" "$tmp/stdout" && ! grep -q "_arguments:" "$tmp/stdout" &&
            ok "zsh: ${pair%%=*}" || not_ok "zsh: ${pair%%=*}" "$(cat "$tmp/stdout")"
    done
else
    echo "skip zsh: it is not installed"
fi
fails 2 "no completion for \`fish\`" "$FOREWARP" help --completion fish

# The features of kernels are a topic under the name of a command.
for command in $("$FOREWARP" help | awk '/^Topics/ {exit} /^  [a-z]/ && $1 != "features" {print $1}'); do
    "$FOREWARP" help "$command" >"$tmp/stdout" && grep -q -e "--color=WHEN" "$tmp/stdout" &&
        ok "help $command" || not_ok "help $command"
done
for topic in $("$FOREWARP" help | sed -n '/^Topics/{n;p}' | tr -d ,); do
    [ "$("$FOREWARP" help "$topic" | wc -l)" -gt 3 ] && ok "help $topic" || not_ok "help $topic"
done

# Colours: on request, never in a file unless asked for, and not where NO_COLOR says so.
coloured() { grep -q "$(printf '\033')\[" "$tmp/stderr"; }
"$FOREWARP" check "$tmp/absent.fw" 2>"$tmp/stderr"
coloured && not_ok "no colours in a file" || ok "no colours in a file"
"$FOREWARP" check "$tmp/absent.fw" --color=always 2>"$tmp/stderr"
coloured && ok "colours where asked" || not_ok "colours where asked"
fails 2 "auto, always or never" "$FOREWARP" check "$tmp/absent.fw" --color=blue

# On a terminal: one line that rewrites itself, with rate, best and time left; colours.
cat >"$tmp/terminal.py" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
out = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    out += part
sys.stdout.buffer.write(out)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
on_terminal() { "$PYTHON" "$tmp/terminal.py" "$@" >"$tmp/stderr"; }
on_terminal "$FOREWARP" check "$tmp/absent.fw"
coloured && ok "colours on a terminal" || not_ok "colours on a terminal"
NO_COLOR=1 on_terminal "$FOREWARP" check "$tmp/absent.fw"
coloured && not_ok "NO_COLOR" || ok "NO_COLOR"
tune() { on_terminal "$FOREWARP" tune examples/jacobi2d.fw -s N=64,M=64 --budget 12t --store "$tmp/s.db" -o "$tmp/out" "$@"; }
tune
tr '\r' '\n' <"$tmp/stderr" | grep -q "0.0 s  start" && ok "a line from the start" || not_ok "a line from the start"
tr '\r' '\n' <"$tmp/stderr" | grep -q "search  .* of 12 trials.*best" && ok "progress on a terminal" ||
    not_ok "progress on a terminal" "$(cat "$tmp/stderr")"
# While one kernel is built, which takes long here, the line goes on.
printf '#!/bin/sh\n[ "$1" = --version ] || sleep 5\nexec cc "$@"\n' >"$tmp/slow"
chmod +x "$tmp/slow"
CC="$tmp/slow" tune -d host --budget 2t
tr '\r' '\n' <"$tmp/stderr" | sed -n 's/^ *[0-9.]* s  //p' | sort | uniq -c | awk '$1 > 2 {n = 1} END {exit !n}' &&
    ok "progress while nothing ends" || not_ok "progress while nothing ends" "$(cat "$tmp/stderr")"
tune -q
grep -q "trials " "$tmp/stderr" && ! grep -q "search  " "$tmp/stderr" && ok "--quiet" || not_ok "--quiet"
"$FOREWARP" tune examples/jacobi2d.fw -s N=64,M=64 --budget 12t --store "$tmp/s.db" -o "$tmp/out" 2>"$tmp/stderr" >"$tmp/stdout"
grep -q "$(printf '[\r\033]')" "$tmp/stderr" && not_ok "plain lines in a log" || ok "plain lines in a log"
finish
