package risk

import (
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/sqltext"
)

// The patterns below find texts that are executed with effects, whatever member they are in. Each takes linear time.

var mentionsSQL = lazyregexp.New(`\bSQL\b`)

// atCommand matches the places at which a shell expects a command, and the directory of the command.
const atCommand = "(?im)(?:^!?|[;&|(`{]|-exec(?:dir)?\\s|" +
	"\\b(?:sudo|doas|xargs|then|do|else|env|nohup|exec|command|builtin|time|nice|setsid|busybox|toybox|" +
	"timeout\\s+\\S+)\\s(?:\\s*-\\S+\\s)*)\\s*(?:/(?:[\\w.-]+/)*)?"

// pattern finds texts with effects. A text without one of the words, in lower case, is not matched against it.
type pattern struct {
	words []string
	*lazyregexp.Regexp
}

// patternOf returns a pattern; its words are separated by spaces.
func patternOf(words string, re *lazyregexp.Regexp) pattern {
	return pattern{strings.Fields(words), re}
}

var shellPatterns = []pattern{
	patternOf("#!", lazyregexp.New(`\A#!\s*/`)),
	patternOf("rm rmdir shred unlink mv mkdir chmod chown chgrp chattr ln tee", lazyregexp.New(atCommand+
		`(?:rm|rmdir|shred|unlink|mv|mkdir|chmod|chown|chgrp|chattr|ln|tee)\s+`+
		`[-/~.$*"'{\w]+\S*(?:\s+\S+)?\s*(?:$|[;&|)`+
		"`"+`]|\s-|\s/)`)),
	patternOf("rm mv cp chmod chown chgrp ln install sed tar rsync", lazyregexp.New(atCommand+
		`(?:rm\s+(?:\S+\s+)*-|(?:mv|cp|chmod|chown|chgrp|ln|install)\s+-\w+\s+\S+\s+\S|sed\s+-\w*i|`+
		`tar\s+(?:-\w*x|x\w{0,4}\s)|rsync\s+-)`)),
	patternOf("xargs", lazyregexp.New(
		`(?i)\bxargs\s+(?:-\S+\s+)*(?:rm|rmdir|unlink|shred|kill|mv|chmod|chown)\b`)),
	patternOf("nc ncat netcat ssh scp service :()", lazyregexp.New(atCommand+
		`(?:(?:nc|ncat|netcat)\s+(?:\S+\s+)*-\w*[ecl]\b|ssh\s+(?:-\S+\s+)*\S+@\S+\s+\S|scp\s+\S[^\n]*\S:\S*|`+
		`service\s+\S+\s+(?:stop|start|restart)\s*(?:$|[;&|])|:\(\)\s*\{)`)),
	patternOf("aws gcloud az gsutil s3cmd", lazyregexp.New(atCommand+
		`(?:aws|gcloud|az|gsutil|s3cmd)\s(?:[^\n;|&]*\s)?(?:rm|rb|delete|destroy|terminate|remove|`+
		`purge)(?:-\S+)?(?:\s|$)`)),
	patternOf("rm sudo su mkfs dd wipefs fdisk parted umount truncate", lazyregexp.New(atCommand+
		`(?:rm\s+-|sudo\s+\S|su\s+-|mkfs[.\w]*\s|dd\s+(?:if|of)=|wipefs\s|fdisk\s|parted\s|umount\s|truncate\s+-)`)),
	patternOf("shutdown reboot halt poweroff kill init", lazyregexp.New(atCommand+
		`(?:shutdown\s+(?:-|now|\+?\d)|(?:reboot|halt|poweroff)\s*(?:$|[;&|-])|kill\s+(?:-|%?\d+\s*(?:$|[;&|]))|`+
		`p?kill(?:all)?\s+-|(?:pkill|killall)\s+\S|init\s+[06]\s*$)`)),
	patternOf("useradd userdel usermod passwd crontab iptables systemctl at", lazyregexp.New(atCommand+
		`(?:user(?:add|del|mod)\s|passwd\s+\S|crontab\s+(?:-|\S+\s*$)|iptables\s|`+
		`systemctl\s+\w*(?:stop|start|able|mask)|at\s+now)`)),
	patternOf("docker podman kubectl helm terraform", lazyregexp.New(atCommand+
		`(?:docker|podman|kubectl|helm|terraform)\s+(?:rm|rmi|run|exec|delete|apply|destroy|drain|scale|install|`+
		`uninstall|system\s)`)),
	patternOf("git apt yum dnf brew pip npm", lazyregexp.New(atCommand+
		`(?:git\s+(?:push|clean|reset\s+--hard)|(?:apt|apt-get|yum|dnf|brew|pip3?|npm)\s+(?:install|remove|purge|`+
		`uninstall|i)\s)`)),
	patternOf("sh python perl ruby node php", lazyregexp.New(atCommand+
		`(?:(?:/\S*/)?(?:ba|z|k|da|fi)?sh\s+-\w*c|(?:/\S*/)?(?:python[\d.]*\s+-c|perl\s+-\w*[ei]|ruby\s+-\w*e|`+
		`node\s+-\w*e|php\s+-\w*r)\b)`)),
	patternOf("powershell pwsh cmd del rd format reg", lazyregexp.New(atCommand+
		`(?:(?:powershell|pwsh)(?:\.exe)?\s+-|cmd(?:\.exe)?\s+/[ck]|del\s+/[fsq]|rd\s+/s|format\s+[a-z]:|`+
		`reg\s+(?:add|delete)\s)`)),
	patternOf("psql mysql mariadb sqlite3 mongo redis-cli dropdb dropuser", lazyregexp.New(atCommand+
		`(?:psql|mysql|mariadb|sqlite3|mongosh?|redis-cli|dropdb|dropuser)\s+\S`)),
	patternOf("cp", lazyregexp.New(atCommand+`(?-i:cp)\s+\S+\s+\S+\s*(?:$|[;&|)])`)),
	patternOf("mongo", lazyregexp.New(atCommand+`mongo\s+(?:-|mongodb:)`)),
	patternOf("docker podman", lazyregexp.New(atCommand+
		`(?:docker|podman)\s+(?:(?:stop|kill|push|cp)\s|(?:volume|network|image|container)\s+(?:rm|prune)|`+
		`compose\s+(?:down|rm|kill|stop)\b)`)),
	patternOf("git publish", lazyregexp.New(atCommand+
		`(?:git\s+(?:rm\s|commit\s+-|checkout\s+(?:--|\.)|branch\s+-[dD]|tag\s+-d|stash\s+(?:drop|clear)|`+
		`config\s+--)|(?:npm|yarn|pnpm|cargo)\s+publish\b)`)),
	patternOf("-item -computer -process -expression -content -file -service -acl -policy -localuser -aduser -module "+
		"-webrequest -restmethod -command -volume", lazyregexp.New(
		`(?i)\b(?:New|Copy|Move|Rename|Remove|Clear|Set|Add|Out|Stop|Start|Restart|Disable|Enable|Install|`+
			`Uninstall|Invoke|Format)-(?:Item(?:Property)?|Computer|Process|Expression|Content|File|Service|Acl|`+
			`ExecutionPolicy|LocalUser|ADUser|Module|WebRequest|RestMethod|Command|Volume)\s+\S`)),
	patternOf(".sh .bash .py .js .rb .pl source", lazyregexp.New(atCommand+
		`(?:(?:ba|z|k|da)?sh\s+(?:-\w+\s+)*\S+\.sh\b|python[\d.]*\s+(?:-\w+\s+)*\S+\.py\b|`+
		`node\s+\S+\.[cm]?js\b|ruby\s+\S+\.rb\b|perl\s+\S+\.pl\b|(?:source|\.)\s+\S+\.(?:ba)?sh\b|source\s+[~/]\S)`)),
	patternOf("> export alias", lazyregexp.New(atCommand+
		`(?:(?:echo|printf|cat|ls|grep|awk|sed|sort|head|tail|curl|:)\s(?:[^\n]*[^\n=<>-])?>{1,2}\s*[~./$\w]\S*\s*`+
		`(?:$|[;&|])|export\s+\w+=\S|alias\s+\w+=)`)),
	patternOf("mount swapoff touch unzip make eval nohup", lazyregexp.New(atCommand+
		`(?:mount\s+/\S+\s+/|swapoff\s+[-/]|touch\s+[~./$]\S*\s*$|g?unzip\s+(?:-\w+\s+)*\S+\.\w|`+
		`make\s+(?:un)?install\s*$|eval\s+["'$\x60(]|nohup\s[^\n]*&\s*$)`)),
	patternOf("del rd erase copy move ren", lazyregexp.New(atCommand+
		`(?:(?:del|rd|erase)\s+\S*[\\*]|(?:x?copy|robocopy|move|ren)\s+\S*\\\S*\s+\S)`)),
	patternOf("sc net schtasks wmic vssadmin bcdedit icacls takeown npx uvx", lazyregexp.New(atCommand+
		`(?:sc(?:\.exe)?\s+(?:stop|delete|create|config)\s+\S|`+
		`net1?\s+(?:user|localgroup|share)\s[^\n]*/(?:add|delete)|`+
		`net\s+stop\s+\S+\s*$|(?:schtasks|takeown)\s+/|icacls\s+\S+\s+/|wmic\s+\w+\s+(?:\S+\s+)*(?:call|delete)\b|`+
		`(?:vssadmin|bcdedit)\s+/?\w|(?:npx|uvx)\s+(?:-\S+\s+)*[@\w][\w@./-]*(?:\s+-|\s*$))`)),
	patternOf("iex webclient", lazyregexp.New(`(?i)\bIEX\s*\(|\bNet\.WebClient\b`)),
	patternOf("=cmd +cmd -cmd @cmd", lazyregexp.New(`(?i)\A\s*[=+@-]\s*cmd\|`)), // a formula of a spreadsheet
	patternOf("curl wget", lazyregexp.New(atCommand+
		`(?:curl\s+(?:\S+\s+)*(?:-X\s*(?:DELETE|PUT|POST|PATCH)|--request\b|-[odFT]\b|--data|--output\b|`+
		`--upload-file\b)|wget\s+(?:-\S+\s+)*https?://)`)),
	patternOf("curl wget base64", lazyregexp.New(
		`(?i)\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:/\S*/)?(?:ba|z|da)?sh\b|\bbase64\s+(?:-d|--decode)\b[^\n|`+
			`]*\|`)),
	patternOf("rm", lazyregexp.New(`(?:^|[^\w-])rm\s+(?:-\w*[rRf]\w*|--recursive|--force)\s+(?:-\S+\s+)*[\w~/.*$"']`)),
	patternOf("> /dev/tcp/ -delete", lazyregexp.New(
		`(?:^|\s)\d?>{1,2}\s*/(?:dev/(?:sd|nvme|hd|tcp)|etc|usr|bin|boot|root|home|var)\b|/dev/tcp/|\s-delete\s*$`)),
}

// isShell reports whether a text has a shell command with effects. The text in lower case is given beside it.
func isShell(text, lower string) bool {
	if matchesAny(shellPatterns, text, lower) {
		return true
	}
	if !strings.ContainsAny(text, `'"\$`) {
		return false
	}
	unquoted := shellQuotes.Replace(text)
	return unquoted != text && matchesAny(shellPatterns, unquoted, strings.ToLower(unquoted))
}

// shellQuotes removes what a shell removes from a word, as in r"m" -rf, and writes $IFS as a space.
var shellQuotes = strings.NewReplacer("\\\n", "", `\`, "", `'`, "", `"`, "", "${IFS}", " ", "$IFS", " ")

var codePatterns = []pattern{
	// Python
	patternOf("os", lazyregexp.New(
		`\bos\s*\.\s*(?:system|popen|remove|unlink|rmdir|removedirs|rename|replace|exec\w+|spawn\w+|kill|chmod|chown|`+
			`truncate|putenv|mkdir|makedirs)\s*\(`)),
	patternOf("shutil subprocess pty pickle marshal importlib runpy",
		lazyregexp.New(`\b(?:shutil\s*\.\s*(?:rmtree|move|copy\w*)|subprocess\s*\.\s*\w+|`+
			`pty\s*\.\s*spawn|pickle\s*\.\s*loads?|marshal\s*\.\s*loads|importlib\s*\.\s*import_module|`+
			`runpy\s*\.\s*\w+)\s*\(`)),
	patternOf("__", lazyregexp.New(`\b__import__\s*\(|__builtins__|__subclasses__\s*\(|__globals__`)),
	patternOf("import", lazyregexp.New(
		`(?m)(?:^|;)\s*(?:from\s+(?:os|subprocess|shutil|ctypes|pty|socket|importlib)\b[\w.]*\s+import\b|`+
			`import\s+(?:[\w.]+\s*,\s*)*(?:os|subprocess|shutil|ctypes|pty|socket|importlib)\s*(?:$|[;,]|\bas\b))`)),
	patternOf("open unlink write_ rmdir", lazyregexp.New(
		`\bopen\s*\([^)\n]*,\s*(?:mode\s*=\s*)?['"][rb+]*[wax]|\)\s*\.\s*(?:unlink|write_text|write_bytes|`+
			`rmdir)\s*\(`)),
	// Python, JavaScript, PHP
	patternOf("eval exec passthru proc_open popen system", lazyregexp.New(
		`(?:^|[^.\w])(?:(?:eval|exec)\s*\(\s*\S|(?:shell_exec|passthru|proc_open|pcntl_exec|popen|system)\()`)),
	// JavaScript
	patternOf("require import", lazyregexp.New(
		`\brequire\s*\(\s*['"](?:node:)?(?:child_process|fs|net|vm|worker_threads|os)\b|`+
			`\bimport\b[^\n;]*['"](?:node:)?(?:child_process|fs|net|vm|worker_threads)\b`)),
	patternOf("process sync function", lazyregexp.New(`\bprocess\s*\.\s*(?:exit|kill|binding|dlopen|mainModule)\b|`+
		`\b(?:execSync|spawnSync|execFileSync|child_process)\b|\bnew\s+Function\b|\bFunction\s*\(\s*['"]`)),
	patternOf("fetch requests httpx axios", lazyregexp.New(
		`\bfetch\s*\([^)]*\bmethod['"]?\s*:\s*['"](?:PUT|PATCH|DELETE)|`+
			`\b(?:requests|httpx|axios)\s*\.\s*(?:post|put|patch|delete)\s*\(`)),
	patternOf("fs deno", lazyregexp.New(
		`\bfs\s*\.\s*(?:promises\s*\.\s*)?(?:unlink|rm|rmdir|write|append|truncate|rename|chmod|mkdir)\w*\s*\(|`+
			`\bDeno\s*\.\s*(?:run|remove|write\w*|Command)\b`)),
	patternOf("globalthis window self global getattr bun", lazyregexp.New(
		`\b(?:globalThis|window|self|global)\s*(?:\.\s*|\[\s*['"])(?:eval|Function)\b|`+
			`\bgetattr\s*\(\s*(?:os|sys|subprocess|shutil|builtins|__builtins__)\b|\bBun\s*\.\s*(?:write|spawn\w*|`+
			`\$)`)),
	// Java, C#, PHP, Go, Rust, Ruby
	patternOf("files. file. directory. fileutils. os. fs::", lazyregexp.New(
		`\bFiles\.(?:delete|write|move|copy|create)\w*\s*\(|`+
			`\b(?:File|Directory)\.(?:[Dd]elete|unlink|rename|Move|Write\w*|write)\s*\(|\bFileUtils\.\w+|`+
			`\bos\.(?:Remove|RemoveAll|Rename|WriteFile|Create|Truncate|Mkdir\w*|Chmod|Chown)\s*\(|`+
			`\bfs::(?:remove_\w+|write|rename|create_dir\w*|set_permissions)\b`)),
	patternOf("filesystem:: file( ${jndi:", lazyregexp.New(
		`\bfilesystem::(?:remove(?:_all)?|rename|copy\w*|create_\w+)\b|`+
			`\bnew\s+(?:java\.io\.)?File\s*\([^)\n]*\)\s*\.\s*(?:delete|renameTo|createNewFile|mkdirs?)|`+
			`(?i:\$\{jndi:)`)),
	patternOf("unlink rmdir file_put_contents", lazyregexp.New(
		`(?:^|[^.\w])(?:unlink|rmdir|file_put_contents)\s*\(\s*['"$]`)),
	patternOf("runtime process php exec popen %x",
		lazyregexp.New(`\bRuntime\s*\.\s*getRuntime\s*\(|\bProcessBuilder\s*\(|`+
			`\bSystem\.Diagnostics\.Process\b|<\?php|\bexec\.Command(?:Context)?\s*\(|\bprocess::Command\b|`+
			`\bIO\.popen\b|%x[({[]`)),
	// MongoDB, GraphQL, Cypher, Gremlin, Redis
	patternOf("delete drop flush config", lazyregexp.New(`(?i)\bDETACH\s+DELETE\s+\w|`+
		`\bg\s*\.\s*[VE]\s*\([^\n]*\.\s*drop\s*\(\s*\)|\A\s*(?:FLUSHALL|FLUSHDB)\b\s*(?:A?SYNC)?\s*\z|`+
		`\A\s*CONFIG\s+SET\s+\S+\s+\S`)),
	patternOf("db mutation", lazyregexp.New(
		`\bdb\s*(?:\.\s*(?:getCollection\s*\([^)\n]*\)|\w+)|\[[^\]\n]*\])\s*\.\s*(?:drop|delete|remove|update|insert|`+
			`replace|bulkWrite|rename|findOneAnd|findAndModify)\w*\s*\(|\bdb\s*\.\s*dropDatabase\s*\(|`+
			`(?:\A|[}\n])\s*mutation\b[^{}]{0,200}\{`)),
	patternOf("match create merge", lazyregexp.New(
		`(?is)\bMATCH\s*\(\w{0,30}(?::\w+)?\s*(?:\{[^}]{0,200}\}\s*)?\)[^;]*\b(?:DELETE|REMOVE|MERGE|CREATE|SET)\s+`+
			`[\w(]|\A\s*(?:CREATE|MERGE)\s*\(\w*:\w+`)),
	patternOf("del unlink set push add rem", lazyregexp.New(
		`\A\s*(?:DEL|UNLINK|HDEL|GETDEL|HSET|MSET|LPUSH|RPUSH|SADD|SREM|ZADD|ZREM|XADD|XDEL)\s+`+
			`(?:\S+:\S*|[a-z]\S*(?:\s+\S+)?\s*\z)|\A\s*SET\s+\S+:\S*\s+\S`)),
}

// isCode reports whether a text has code with effects. The text in lower case is given beside it.
func isCode(text, lower string) bool { return matchesAny(codePatterns, text, lower) }

func matchesAny(patterns []pattern, text, lower string) bool {
	for _, p := range patterns {
		if containsAny(lower, p.words) && p.MatchString(text) {
			return true
		}
	}
	return false
}

// containsAny reports whether a text contains one of the words.
func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// effectOfSQL returns the effect of the SQL in a text that may be anything.
func effectOfSQL(text string) sqltext.Effect {
	switch {
	case sqltext.Destroys(text):
		return sqltext.Destroy
	case !sqltext.HasEffects(text):
		return sqltext.Read
	case sqltext.Judge(text).Effect == sqltext.Destroy:
		return sqltext.Destroy
	}
	return sqltext.Write
}
