# tries: to read the host's files with the shell and whatever programs the image has
# stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
# want: nothing
# on the host: succeeds

for path in {{world_file}} {{root_file}} /proc/1/root{{world_file}} /host{{world_file}} /mnt{{world_file}}; do
	cat "$path"
done
