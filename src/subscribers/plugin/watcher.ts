/**
 * The shell script that each plugin runs under, so that it dies with its host however that ends. It is the leader of a session and
 * a process group of its own, in which the plugin and whatever the plugin starts live.
 *
 * Arguments: the private folder, the plugin's absolute path, its arguments. They are never read as shell text. Descriptor 3 is a
 * socket to the host: its end means that the host is gone, the line `now` that it wants the plugin dead at once. The script says
 * `exit <status>` there when the plugin has ended, and then kills what is left of the group, itself included; by then it has reaped
 * its own, so that nothing is left to an init that may be slow. Descriptor 4 is held by the part alone that listens to the host: its
 * end, before the plugin's, tells the host that nobody would notice its own. The plugin has neither of the two, nor what a shell puts
 * into an environment.
 *
 * No variable is set before the plugin has its own: the environment may have one of that name, which would be changed in it.
 *
 * For any POSIX shell. A signal ends `wait` early and leaves it to the next one to tell the plugin's status; a shell that has told
 * it already says 127 then.
 */
export const WATCHER = `
trap 'signalled=1' HUP INT TERM
(shift; unset PWD OLDPWD SHLVL; exec "$@") 3<&- 4<&- &
plugin=$!
folder=$1
exec >/dev/null 2>&1
PATH=/usr/bin:/bin:$PATH
(
  trap '' HUP INT TERM
  order=
  read -r order <&3
  if [ "$order" = now ]; then
    kill -KILL "$plugin"
    read -r order <&3
  fi
  kill -TERM 0
  sleep 1
  rm -rf -- "$folder"
  kill -KILL 0
) &
reader=$!
exec 4<&-
trap '' PIPE
signalled=
wait "$plugin"
status=$?
while [ -n "$signalled" ]; do
  signalled=
  wait "$plugin"
  next=$?
  if [ "$next" != 127 ]; then status=$next; fi
done
kill -KILL "$reader"
wait "$reader"
rm -rf -- "$folder"
echo "exit $status" >&3
kill -KILL 0
`;
