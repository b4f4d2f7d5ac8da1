package redact

// commandRules find passwords that commands and configurations take without a name.
func commandRules() []rule {
	return []rule{
		// A password on the standard input of a command.
		{kind: "password", anchors: []string{"chpasswd", "sudo -s", "--password-stdin", "--with-token",
			"passwd --stdin", "kinit", "cryptsetup"}, glued: true, before: 300, check: isArgument,
			re: compile(`(?:echo|printf)(?:[ \t]+-[a-z]+)*[ \t]+(?:["']%s(?:\\n)?["'][ \t]+)?["']?` +
				`([^\n]{4,160}?)(?:\\n)?["']?[ \t]{0,3}\|[ \t]{0,3}(?:sudo[ \t]+)?` +
				`(?:chpasswd|sudo -S|kinit|cryptsetup|[a-z][^\n|]{0,80} --?(?:password-stdin|with-token)|` +
				`passwd --stdin)`)},
		{kind: "password", anchors: []string{"-pass pass:", "-passin pass:", "-passout pass:"}, glued: true, after: 160,
			re:    compile(`(?i)\A-pass(?:in|out)? pass:["']?([^\s"']{4,120})`),
			check: passwordText},
		{kind: "password", anchors: []string{"az login", "ibmcloud login", "cf login", "oc login", "sqlcmd ",
			"ipmitool ", "plink ", "pscp ", "mosquitto_pub", "mosquitto_sub", "mongo ", "mongosh ", "mongodump ",
			"mongorestore ", "clickhouse-client"}, after: 300, locate: commandPassword},
		{kind: "password", anchors: []string{"http -", "https -", "xh -"}, after: 240, check: isArgument,
			re: compile(`(?i)\A(?:https?|xh) (?:-[^\s]+ ){0,4}?(?:-a|--auth)[ =]["']?[\w.@\-]{1,64}:([^\s"']{4,120})`)},
		{kind: "password", anchors: []string{"smbclient ", "rpcclient ", "smbmap "}, after: 300, check: isArgument,
			re: compile(`\A(?i:smbclient|rpcclient|smbmap) [^\n|;]{0,150}?-U ?["']?[\w.\\/@\-]{1,64}%` +
				`([^\s"']{4,120})`)},
		{kind: "password", anchors: []string{"lftp "}, after: 300, check: isArgument,
			re: compile(`\A(?i:lftp) [^\n|;]{0,150}?-u ?["']?[\w.@\-]{1,64},([^\s"']{4,120})`)},
		{kind: "secret", anchors: []string{"put-parameter", "keyvault secret set", "gh secret set"},
			glued: true, after: 500, check: isArgument,
			re: compile(`(?i)\A[a-z \-]{10,24}[^\n|;]{0,240}? (?:--value|--body|-b)[ =]["']?([^\s"']{4,240})`)},
		{kind: "secret", anchors: []string{"put-parameter", "keyvault secret set", "gh secret set"}, glued: true,
			after: 500, locate: quotedAfter(
				`(?i)\A[a-z \-]{10,24}[^\n|;]{0,240}? (?:--value|--body|-b)[ =]["']`, isArgument)},
		{kind: "password", anchors: []string{"wifi:"}, after: 240,
			re: compile(`(?i)\AWIFI:[^\n]{0,120}?\bP:((?:\\.|[^;\\\n]){8,63});`), check: passwordText},
		// Cisco's IOS: the digit is the kind of encryption.
		{kind: "password", anchors: []string{"password 0 ", "password 7 ", "secret 0 ", "secret 5 ", "secret 8 ",
			"secret 9 ", "key 0 ", "key 7 "}, after: 160, check: isArgument,
			re: compile(`(?i)\A(?:password|secret|key) [05789] ([^\s"']{4,120})`)},
		{kind: "password", anchors: []string{"credentials:", "creds:", "credentials are", "creds are"}, after: 200,
			check: isArgument,
			re: compile(`(?i)\Acred(?:ential)?s(?::| are)[ \t]{1,3}[\w.@+\-]{1,64}[ \t]{0,2}[/:|,][ \t]{0,2}` +
				`([^\s"']{6,120})`)},
	}
}

// isArgument reports whether an argument at the place of a password is one, and not a variable, a word or an option.
func isArgument(b []byte) bool {
	return b[0] != '-' && b[0] != '$' && (isPasswordWord(b) || isTyped(b) || isScrambled(b)) && notDummy(b)
}
