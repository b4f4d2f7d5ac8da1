"""Commands, environment variables and paths that the analyser of shell commands refuses."""

from __future__ import annotations

import re

# Well-known programs that are refused: they run other programs or texts, change files, rights or the system, or open
# connections.
BLOCKED = frozenset(
    "rm rmdir del shred unlink chmod chown chgrp chattr setfacl wget curl fetch aria2c axel lynx links w3m ssh scp "
    "sftp rsync nc ncat netcat socat telnet ftp tftp lftp sudo su doas pkexec runuser sg newgrp mkfs fdisk parted dd "
    "mount umount losetup swapon reboot shutdown halt poweroff init telinit systemctl service systemd-run "
    "systemd-nspawn machinectl loginctl journalctl initctl rc-service update-rc.d chkconfig launchctl kill pkill "
    "killall killall5 fuser eval exec source . bash sh zsh dash ksh mksh pdksh ash fish csh tcsh rbash yash elvish nu "
    "xonsh python python2 python3 pypy pypy3 ipython perl ruby irb jruby node nodejs deno bun php php-cgi lua luajit "
    "awk gawk mawk nawk original-awk tclsh wish expect osascript powershell pwsh cmd wscript cscript mshta rundll32 "
    "regsvr32 groovy scala kotlin kotlinc java javac jshell jjs clojure clj ghc ghci runghc runhaskell ocaml erl "
    "escript elixir iex julia r rscript octave guile racket sbcl clisp swift go gofmt rustc cargo rustup gcc g++ cc "
    "c++ clang clang++ tcc as ld nasm make gmake cmake ninja meson ant mvn gradle gradlew bazel sbt lein rake bundle "
    "dotnet msbuild mono tsc tsx ts-node esbuild vite webpack npm npx pnpm pnpx yarn bunx corepack nvm fnm volta pip "
    "pip3 pipx uv uvx poetry pdm pipenv conda mamba virtualenv gem cpan cpanm composer luarocks cabal stack opam brew "
    "apt apt-get aptitude apt-key dpkg rpm yum dnf zypper pacman apk snap flatpak nix nix-shell nix-env guix emerge "
    "port choco winget xargs parallel watch nohup setsid env printenv command builtin trap alias unalias export "
    "declare typeset local readonly unset crontab at batch anacron fcron useradd userdel usermod groupadd groupmod "
    "adduser deluser passwd chpasswd chsh chfn visudo vipw iptables ip6tables nft ufw firewall-cmd ip ifconfig route "
    "insmod rmmod modprobe depmod kmod sysctl truncate tee mv ln cp mknod mkfifo install link sync split csplit patch "
    "ed ex "
    "rename mmv gdb lldb strace ltrace perf bpftrace docker podman buildah nerdctl ctr crictl runc kubectl helm oc "
    "chroot unshare nsenter busybox toybox script scriptreplay screen tmux byobu history fc timeout nice ionice chrt "
    "taskset stdbuf time flock coproc enable hash set shopt ulimit umask vim vi view nvim nano emacs emacsclient pico "
    "joe micro less more most man info pg tar unzip zip 7z 7za rar unrar gzip gunzip bzip2 xz cpio pax ar base64 "
    "base32 xxd openssl gpg gpg2 age svn hg bzr fossil cvs git sed find fd fdfind rg ag ack mail mailx sendmail mutt "
    "mysql psql sqlite3 mongo mongosh redis-cli aws gcloud az gh glab terraform tofu ansible ansible-playbook vagrant "
    "packer entr inotifywait ldconfig ld.so patchelf update-alternatives dircolors run-parts start-stop-daemon "
    "daemonize start logrotate debconf setcap setpriv capsh dbus-send busctl gdbus xdg-open open setxkbmap xdotool "
    "wine qemu-system-x86_64 firejail bwrap proot fakeroot faketime valgrind lsof-exec ssh-add ssh-agent ssh-copy-id "
    "ssh-keygen autossh mosh sshpass rlwrap unbuffer zmodload bindkey bind complete compgen mapfile readarray "
    "printf-v wall write logger jq-exec yq m4 cpp troff groff latex pdflatex xelatex lualatex tex gs ffmpeg convert "
    "magick nmap tcpdump ngrep arpspoof hydra john hashcat msfconsole chpass getfacl xattr defaults launchd "
    "at.allow".split()
)
# Programs and builtins that only read and print, whatever their arguments are. A program that is neither here nor in
# READING is refused.
READERS = frozenset(
    "ls cat head tail wc cut tr grep egrep fgrep nl od hexdump hd strings stat du df pwd cd pushd popd dirs echo "
    "true false : [ [[ seq sleep cal whoami who w id groups logname users uname arch uptime pgrep free vmstat "
    "iostat nproc lscpu lsblk lsmod lspci lsusb lsof ss netstat basename dirname realpath readlink which whereis "
    "type diff cmp comm join paste fold fmt expand unexpand column rev tac factor sum cksum md5sum sha1sum "
    "sha224sum sha256sum sha384sum sha512sum b2sum locale getconf tty expr bc numfmt pr look wait "
    "exit return break continue shift pathchk tsort getent lsb_release locate dir vdir".split()
)
# Programs that only print, unless an argument matches: then they write or run something.
READING = {
    "sed": re.compile(r"\s-\w*i|\s--in-place|\s-\w*s?f|\s--file|[;{}'\" /\d$]w[ /]|[;'\"\d]e\b|\bw\s+\S"
        r"|!\s*e\b|[/|#,;:@_%][gpiIm\d]*e[gpiIm\d]*(?=['\"\s;}]|$)"),
    "find": re.compile(r"-(?:delete|exec|execdir|ok|okdir|fprint\w*|fls|files0-from)\b"),
    "git": re.compile(
        r"^git (?!(?:status|log|diff|show|branch|rev-parse|blame|ls-files|shortlog|describe)\b)"
        r"|^git branch\s+(?!-(?:a|r|v|vv|-list)\b)\S|\s--(?:output|ext-diff|textconv|open-files-in-pager|exec"
        r"|upload-pack|receive-pack|paginate|config)|\s-O|\s-c\b"
    ),
    "sort": re.compile(r"\s-\w*o|\s--output|\s--compress-program"),
    "uniq": re.compile(r"^uniq(?:\s+-\S+)*\s+(?:-|[^\s|<>;&-]\S*)\s+[^\s|<>;&]"),
    # A redirection of awk follows print; getline and system run commands; @ calls a function by name.
    "awk": re.compile(
        r"\bsystem\b|\bgetline\b|@|\b(?:ARG[CV]|ENVIRON)\b|/inet|\bprintf?\b.*(?:>|\|)"
        r"|\s-(?!F|v)\S|[\"']-(?!F|v)\S|\$['\"]", re.S),
    "jq": re.compile(r"\benv\b|\$ENV|\s-\w*f|\s--from-file|\s-L|\b(?:import|include)\b"),  # it prints variables
    "set": re.compile(r"^set(?!(?:\s+[-+](?:[eux]+|[eux]*o\s+(?:errexit|nounset|pipefail|xtrace)))+$)", re.S),
    "read": re.compile(r"^read(?!(?:\s+-r)?(?:\s+(?!npm_|\w*_proxy)[a-z]\w*)+$)"),  # it sets variables
    "command": re.compile(r"^command(?!\s+-[vV]\s)"),
    "tree": re.compile(r"\s-o\b"),
    "ps": re.compile(r"(?<![oOCuUGtpN])\s(?=[A-Za-z]*[eE])[A-Za-z]++(?=\s|$)"),  # without a hyphen, e shows variables
    "date": re.compile(r"\s(?:-\w*s|--set|-\w*f|--file)"),
    "hostname": re.compile(r"^hostname\s+(?!-)\S|\s-F"),
    "dmesg": re.compile(r"\s-\w*[cC]|--clear"),
    "printf": re.compile(r"\s-v\b"),
    "test": re.compile(r"\s-v\b"),  # its operand may contain a command
    "file": re.compile(r"\s-\w*[CzZ]|--compile|--uncompress"),
    "iconv": re.compile(r"\s-\w*o|--output"),
    "shuf": re.compile(r"\s-\w*o|--output"),
}
# Variables that name a program, a file of commands or a library, which other programs then run or load.
VARIABLES = re.compile(
    r"(?:PATH|IFS|ENV|BASH_ENV|BASHOPTS|SHELLOPTS|PS[0-4]|PROMPT_COMMAND|BASH_FUNC\w*|CDPATH|GLOBIGNORE|ZDOTDIR|FPATH"
    r"|HOME|SHELL|LD_\w+|DYLD_\w+|GLIBC_\w+|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_\w+|HOSTALIASES|RESOLV_\w+|TERMINFO\w*"
    r"|TERMCAP|INPUTRC|PYTHON\w*|NODE_\w+|NPM_\w+|npm_\w+|YARN_\w+|DENO_\w+|BUN_\w+|PERL\w*|RUBY\w*|GEM_\w+|BUNDLE_\w+"
    r"|LUA_\w+|PHPRC|PHP_\w+|TCL\w*|JAVA_\w+|_JAVA_OPTIONS|JDK_\w+|CLASSPATH|MAVEN_\w+|GRADLE_\w+|R_\w+|JULIA_\w+"
    r"|ERL_\w+|ELIXIR_\w+|GHC\w*|DOTNET_\w+|COMPlus_\w+|CORECLR_\w+|GO\w+|CGO_\w+|CARGO\w*|RUST\w*|CC|CXX|CPP|LD|AR|AS"
    r"|NM|CFLAGS|CXXFLAGS|LDFLAGS|MAKE\w*|CMAKE_\w+|PKG_CONFIG\w*|GIT_\w+|SSH_\w+|SVN_\w+|HG\w*|CVS_RSH|RSYNC_\w+|PAGER"
    r"|MANPAGER|\w*_PAGER|EDITOR|VISUAL|SUDO_\w+|\w*_EDITOR|BROWSER|LESS\w*|MORE|MANOPT|VIMINIT|EXINIT|MYVIMRC|VIM\w*"
    r"|EMACS\w*|TAR_OPTIONS|GZIP|UNZIP|ZIPOPT|GREP_OPTIONS|GNUPGHOME|OPENSSL_\w+|SSL_\w+|CURL_\w+|WGETRC|HTTPS?_PROXY"
    r"|https?_proxy|ALL_PROXY|all_proxy|FTP_PROXY|ftp_proxy|no_proxy|NO_PROXY|DOCKER_\w+|KUBECONFIG|HELM_\w+|AWS_\w+"
    r"|PGPASSFILE|PSQL\w*|PSQLRC|MYSQL_\w+|PIP_\w+|UV_\w+|CONDA_\w+|VIRTUAL_ENV|XDG_\w+|DBUS_\w+|DISPLAY|TMUX\w*|TMPDIR"
    r"|FZF_\w+|RIPGREP_CONFIG_PATH|ACK_PAGER\w*|LS_COLORS_CMD|COMP_\w+|TRACE\w*|QT_\w+|GTK_\w+|GST_\w+|GIO_\w+|VK_\w+"
    r"|OPENBLAS_\w+|PKEXEC_\w+|SYSTEMD_\w+|GCC_\w+|COMPILER_PATH)"
)
# Files that hold secrets, and files from which programs, loaders, shells and services take what they run.
PATHS = re.compile(
    r"(?:^|[\s'\"=:/])\.\.(?:/|$)|~?/?\.ssh\b|^/etc(?:/|$)|[=:\s'\"]/etc/|/etc/(?:passwd|shadow|sudoers|gshadow)"
    r"|^/root\b|/var/log\b|(?:^|/)\.env\b|\.git/(?:config|hooks)\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\.pem$|/proc/|/sys/"
    r"|/dev/(?!null\b|stdout\b|stderr\b)|ld\.so\.(?:preload|conf|cache)|/(?:cron\w*|at|anacron)(?:\.\w+)?(?:/|$)"
    r"|/spool/|/systemd/|/init\.d|/rc\.\w+|\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc"
    r"|zprofile|zshenv|zlogin|kshrc|cshrc|tcshrc|login|inputrc|vimrc|exrc|emacs|gitconfig|npmrc|pypirc|netrc|gdbinit"
    r"|lldbinit|pythonrc|irbrc|perlrc|Rprofile|wgetrc|curlrc|screenrc|tmux\.conf|xinitrc|xsession|Xresources"
    r"|pam_environment|gnupg|aws|kube|docker|config/(?:autostart|systemd|fish|git|nvim|gh|gcloud|hub|op|rclone)"
    r"|\w*_history)\b|/authorized_keys"
    r"|/sitecustomize|/usercustomize|\.pth$|/autostart/|LaunchAgents|LaunchDaemons"
    r"|^/(?:usr/(?:local/)?)?(?:s?bin|lib\w*)(?:/|$)|^/boot\b|^/opt/|/binfmt_misc|/core_pattern"
    r"|^/(?:var/)?run/|docker\.sock"
)
# Files that PATHS protects, with which patterns such as /e?c/passwd are compared.
PROTECTED = (
    "/etc/passwd", "/etc/shadow", "/root/.bashrc", "/proc/self/environ", "/proc/1/environ", "/sys/class/net",
    "/dev/sda", "/var/log/auth.log", "/run/secrets/x", "/var/run/secrets/x", "/boot/x", "~/.ssh/id_rsa",
    "~/.bash_history",
    "~/.aws/credentials", "~/.netrc", "~/.docker/config.json", "~/.kube/config", "~/.gnupg/x", "~/.config/gh/hosts.yml",
    ".env", ".git/config", ".ssh/id_rsa")
# Programs below these directories may be named by their path; PATHS forbids them as arguments.
PROGRAM_DIRECTORIES = re.compile(r"/(?:usr/(?:local/)?)?(?:s?bin)/[\w.+-]+")
