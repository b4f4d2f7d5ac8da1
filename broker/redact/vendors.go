package redact

import "slices"

// vendorRules are the formats of tokens as their vendors publish them, or as
// they can be seen in what vendors issue. Order does not matter.
func vendorRules() []rule {
	return slices.Concat(cloudRules(), codeRules(), messageRules(), moneyRules(), modelRules(), serviceRules())
}

func cloudRules() []rule {
	const uuid = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`
	return []rule{
		token("aws-access-key", "AKIA", `[A-Z0-9]{16}`),
		token("aws-access-key", "ASIA", `[A-Z0-9]{16}`),
		token("aws-access-key", "ABIA", `[A-Z0-9]{16}`),
		token("aws-access-key", "ACCA", `[A-Z0-9]{16}`),
		token("aws-access-key", "A3T", `[A-Z0-9]{17}`),
		token("aws-appsync-key", "da2-", `[a-z0-9]{26}`),
		token("aws-mws-key", "amzn.mws.", uuid),
		token("aws-bedrock-key", "ABSK", `[A-Za-z0-9+/]{100,}={0,2}`),
		token("google-api-key", "AIza", `[0-9A-Za-z_\-]{35}`),
		token("google-oauth-token", "ya29.", `[0-9A-Za-z_\-]{20,}`),
		token("google-client-secret", "GOCSPX-", `[0-9A-Za-z_\-]{28}`),
		token("google-refresh-token", "1//0", `[0-9A-Za-z_\-]{30,}`),
		within("azure-client-secret", "Q~", 5, `[A-Za-z0-9_]{3}\dQ~[A-Za-z0-9_~.\-]{31,34}`),
		within("azure-key", "JQQJ9", 60, `[A-Za-z0-9]{44,52}JQQJ9[9D][A-Za-z0-9]{20,30}`),
		within("azure-devops-token", "AZDO", 80, `[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}`),
		token("alibaba-key", "LTAI", `[A-Za-z0-9]{12,30}`),
		token("tencent-key", "AKID", `[A-Za-z0-9]{32}`),
		token("digitalocean-token", "dop_v1_", `[a-fA-F0-9]{64}`),
		token("digitalocean-token", "doo_v1_", `[a-fA-F0-9]{64}`),
		token("digitalocean-token", "dor_v1_", `[a-fA-F0-9]{64}`),
		token("heroku-key", "HRKU-", `[0-9A-Za-z_\-]{36,64}`),
		token("cloudflare-key", "v1.0-", `[a-fA-F0-9]{24}-[a-fA-F0-9]{146}`),
		token("fly-token", "fm2_", `[A-Za-z0-9+/_\-]{100,}={0,3}`),
		token("fly-token", "fm1r_", `[A-Za-z0-9+/_\-]{100,}={0,3}`),
		token("fly-token", "fm1a_", `[A-Za-z0-9+/_\-]{100,}={0,3}`),
		token("fly-token", "fo1_", `[A-Za-z0-9_\-]{43}`),
		token("netlify-token", "nfp_", `[A-Za-z0-9]{36,40}`),
		token("supabase-key", "sbp_", `[a-fA-F0-9]{40}`),
		token("supabase-key", "sb_secret_", `[A-Za-z0-9_\-]{20,60}`),
		token("planetscale-token", "pscale_tkn_", `[A-Za-z0-9_.=\-]{32,64}`),
		token("planetscale-token", "pscale_oauth_", `[A-Za-z0-9_.=\-]{32,64}`),
		token("planetscale-password", "pscale_pw_", `[A-Za-z0-9_.=\-]{32,64}`),
		token("databricks-token", "dapi", `[a-fA-F0-9]{32}(?:-\d)?`),
		token("vault-token", "hvs.", `[A-Za-z0-9_\-]{24,}`),
		token("vault-token", "hvr.", `[A-Za-z0-9_\-]{24,}`),
		{kind: "vault-token", anchors: []string{"s."}, after: 40, re: compile(`\A(s\.[A-Za-z0-9]{24})` + end), check: mixed},
		token("vault-token", "hvb.", `[A-Za-z0-9_\-]{24,}`),
		within("terraform-token", ".atlasv1.", 14, `[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=\-]{60,70}`),
		token("pulumi-token", "pul-", `[a-fA-F0-9]{40}`),
		{kind: "doppler-token", anchors: []string{"dp."}, re: compile(`\A(dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]+\.)?[A-Za-z0-9]{40,44})` + end)},
		token("openshift-token", "sha256~", `[A-Za-z0-9_\-]{43}`),
		token("scaleway-key", "SCW", `[A-Z0-9]{17}`),
		token("yandex-key", "AQVN", `[A-Za-z0-9_\-]{35,38}`),
		token("infracost-key", "ico-", `[A-Za-z0-9]{32}`),
		token("ibm-key", "ApiKey-", uuid),
	}
}

func codeRules() []rule {
	return []rule{
		token("github-token", "ghp_", `[A-Za-z0-9]{36,}`),
		token("github-token", "gho_", `[A-Za-z0-9]{36,}`),
		token("github-token", "ghu_", `[A-Za-z0-9]{36,}`),
		token("github-token", "ghs_", `[A-Za-z0-9]{36,}`),
		token("github-token", "ghr_", `[A-Za-z0-9]{36,}`),
		token("github-token", "github_pat_", `[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`),
		{kind: "gitlab-token", anchors: []string{"gl"}, re: compile(`\A(gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent|ffct|oas)-[A-Za-z0-9_\-=]{20,64}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?)` + end)},
		token("gitlab-token", "GR1348941", `[A-Za-z0-9_\-]{20}`),
		token("bitbucket-password", "ATBB", `[A-Za-z0-9]{32}`),
		token("atlassian-token", "ATATT3", `[A-Za-z0-9_=\-]{180,}`),
		token("atlassian-token", "ATCTT3", `[A-Za-z0-9_=\-]{180,}`),
		token("npm-token", "npm_", `[A-Za-z0-9]{36}`),
		token("pypi-token", "pypi-AgE", `[A-Za-z0-9_\-]{50,}`),
		token("rubygems-key", "rubygems_", `[a-fA-F0-9]{48}`),
		token("crates-token", "cio", `[A-Za-z0-9]{32}`),
		token("nuget-key", "oy2", `[a-z0-9]{43}`),
		token("clojars-token", "CLOJARS_", `[a-z0-9]{60}`),
		token("docker-token", "dckr_pat_", `[A-Za-z0-9_\-]{27}`),
		token("docker-token", "dckr_oat_", `[A-Za-z0-9_\-]{27,40}`),
		token("artifactory-key", "AKCp", `[A-Za-z0-9]{69}`),
		token("artifactory-token", "cmVmd", `[A-Za-z0-9]{59}`),
		token("sonar-token", "squ_", `[a-fA-F0-9]{40}`),
		token("sonar-token", "sqp_", `[a-fA-F0-9]{40}`),
		token("sonar-token", "sqa_", `[a-fA-F0-9]{40}`),
		token("sourcegraph-token", "sgp_", `(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}`),
		token("buildkite-token", "bkua_", `[a-fA-F0-9]{40}`),
		token("circleci-token", "CCIPAT_", `[A-Za-z0-9]{22}_[a-fA-F0-9]{40}`),
		token("postman-key", "PMAK-", `[a-fA-F0-9]{24}-[a-fA-F0-9]{34}`),
		token("prefect-key", "pnu_", `[A-Za-z0-9]{36}`),
		token("readme-key", "rdme_", `[a-z0-9]{70}`),
		token("harness-token", "pat.", `[A-Za-z0-9_\-]{22}\.[0-9a-fA-F]{24}\.[A-Za-z0-9]{20}`),
		token("sentry-token", "sntrys_", `[A-Za-z0-9+/=_\-]{60,}`),
		token("sentry-token", "sntryu_", `[a-fA-F0-9]{64}`),
		token("grafana-token", "glsa_", `[A-Za-z0-9]{32}_[A-Fa-fA-F0-9]{8}`),
		token("grafana-token", "glc_", `[A-Za-z0-9+/]{32,}={0,3}`),
		token("grafana-key", "eyJrIjoi", `[A-Za-z0-9]{60,}={0,3}`),
		token("newrelic-key", "NRAK-", `[A-Z0-9]{27}`),
		token("newrelic-key", "NRJS-", `[a-fA-F0-9]{19}`),
		token("newrelic-key", "NRII-", `[A-Za-z0-9_\-]{32}`),
		{kind: "dynatrace-token", anchors: []string{"dt0"}, re: compile(`\A(dt0[a-zA-Z]\d{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64})` + end)},
		token("snyk-token", "snyk_", `[A-Za-z0-9_.\-]{36,}`),
	}
}

func messageRules() []rule {
	return []rule{
		{kind: "slack-token", anchors: []string{"xox"}, re: compile(`\A(xox[abceoprs](?:\.xox[bp])?-(?:\d-)?[A-Za-z0-9\-]{10,})`), check: isSlackToken},
		{kind: "slack-token", anchors: []string{"xapp-"}, re: compile(`\A(xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+)` + end)},
		{kind: "slack-webhook", anchors: []string{"hooks.slack.com/"}, glued: true, re: compile(`\Ahooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,90})`)},
		{kind: "discord-token", anchors: []string{"discord", "bot "}, glued: true, after: 140, re: compile(`(?:^|[^A-Za-z0-9_\-])([MNO][A-Za-z\d_\-]{23,27}\.[\w\-]{6}\.[\w\-]{27,40})` + end)},
		{kind: "discord-webhook", anchors: []string{"/api/webhooks/"}, glued: true, re: compile(`\A/api/webhooks/(\d{17,20}/[\w\-]{60,80})`)},
		{kind: "teams-webhook", anchors: []string{".webhook.office.com/"}, glued: true, re: compile(`\A\.webhook\.office\.com/webhookb2/([A-Za-z0-9@\-]{36,80}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9\-]{36})`)},
		{kind: "telegram-token", anchors: []string{":aa"}, before: 14, re: compile(`(?:^|[^A-Za-z0-9_]|bot)(\d{8,10}:AA[A-Za-z0-9_\-]{32,33})` + end)},
		token("twilio-key", "SK", `[0-9a-fA-F]{32}`),
		token("sendgrid-key", "SG.", `[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{43}`),
		token("mailgun-key", "key-", `[a-fA-F0-9]{32}`),
		within("mailchimp-key", "-us", 33, `[a-fA-F0-9]{32}-us\d{1,2}`),
		token("brevo-key", "xkeysib-", `[a-fA-F0-9]{64}-[A-Za-z0-9]{16}`),
		token("brevo-key", "xsmtpsib-", `[a-fA-F0-9]{64}-[A-Za-z0-9]{16}`),
		token("resend-key", "re_", `[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`),
	}
}

func moneyRules() []rule {
	return []rule{
		{kind: "stripe-key", anchors: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_"}, re: compile(`\A([sr]k_(?:live|test|prod)_[0-9A-Za-z]{10,})` + end)},
		token("stripe-secret", "whsec_", `[0-9A-Za-z+/]{24,64}={0,2}`),
		token("square-token", "sq0atp-", `[A-Za-z0-9_\-]{22}`),
		token("square-secret", "sq0csp-", `[A-Za-z0-9_\-]{43}`),
		token("square-token", "EAAA", `[A-Za-z0-9_\-]{60}`),
		token("paypal-token", "access_token$production$", `[a-z0-9]{16}\$[a-fA-F0-9]{32}`),
		token("paypal-token", "access_token$sandbox$", `[a-z0-9]{16}\$[a-fA-F0-9]{32}`),
		{kind: "shopify-token", anchors: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, re: compile(`\A(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})` + end)},
		{kind: "plaid-token", anchors: []string{"access-sandbox-", "access-development-", "access-production-"}, re: compile(`\A(access-(?:sandbox|development|production)-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})` + end)},
		{kind: "flutterwave-key", anchors: []string{"flwseck", "flwpubk"}, re: compile(`\A(FLW(?:SEC|PUB)K(?:_TEST)?-[a-hA-H0-9]{12,32}(?:-X)?)` + end)},
		{kind: "razorpay-key", anchors: []string{"rzp_live_", "rzp_test_"}, re: compile(`\A(rzp_(?:live|test)_[A-Za-z0-9]{14})` + end)},
		{kind: "shippo-token", anchors: []string{"shippo_live_", "shippo_test_"}, re: compile(`\A(shippo_(?:live|test)_[a-fA-F0-9]{40})` + end)},
		{kind: "duffel-token", anchors: []string{"duffel_live_", "duffel_test_"}, re: compile(`\A(duffel_(?:live|test)_[A-Za-z0-9_=\-]{43})` + end)},
		{kind: "easypost-key", anchors: []string{"ezak", "eztk"}, re: compile(`\A(EZ[AT]K[A-Za-z0-9]{54})` + end)},
	}
}

func modelRules() []rule {
	return []rule{
		{kind: "anthropic-key", anchors: []string{"sk-ant-"}, re: compile(`\A(sk-ant-[a-z0-9]{3,10}-[A-Za-z0-9_\-]{24,})` + end)},
		{kind: "openai-key", anchors: []string{"sk-"}, re: compile(`\A(sk-(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_\-]{20,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48}))` + end)},
		{kind: "model-key", anchors: []string{"sk-"}, re: compile(`\A(sk-(?:or-v1-[a-fA-F0-9]{64}|[a-fA-F0-9]{32,48}|lf-[0-9a-fA-F\-]{36}))` + end)},
		token("huggingface-token", "hf_", `[A-Za-z0-9]{34,40}`),
		token("huggingface-token", "api_org_", `[A-Za-z]{34}`),
		token("replicate-token", "r8_", `[A-Za-z0-9]{37}`),
		token("groq-key", "gsk_", `[A-Za-z0-9]{48,56}`),
		token("perplexity-key", "pplx-", `[A-Za-z0-9]{40,56}`),
		token("xai-key", "xai-", `[A-Za-z0-9]{70,90}`),
		token("nvidia-key", "nvapi-", `[A-Za-z0-9_\-]{60,70}`),
		token("langsmith-key", "lsv2_", `(?:pt|sk)_[a-fA-F0-9]{32}_[a-fA-F0-9]{10}`),
		token("pinecone-key", "pcsk_", `[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}`),
		token("tavily-key", "tvly-", `[A-Za-z0-9_\-]{32,60}`),
		token("firecrawl-key", "fc-", `[a-fA-F0-9]{32}`),
		token("elevenlabs-key", "sk_", `[a-fA-F0-9]{48}`),
		token("fireworks-key", "fw_", `[A-Za-z0-9]{24}`),
	}
}

func serviceRules() []rule {
	return []rule{
		token("adafruit-key", "aio_", `[A-Za-z0-9]{28}`),
		token("dropbox-token", "sl.", `[A-Za-z0-9_\-]{100,}`),
		token("dependency-track-key", "odt_", `[A-Za-z0-9]{32,}`),
		token("jina-key", "jina_", `[A-Za-z0-9_]{50,70}`),
		token("stackhawk-key", "hawk.", `[A-Za-z0-9_\-]{20}\.[A-Za-z0-9_\-]{20}`),
		token("teamcity-token", "eyJ0eXAiOiAiVENWMiJ9.", `[A-Za-z0-9_\-]{36}\.[A-Za-z0-9_\-]{48}`),
		within("salesforce-token", "!AQ", 16, `00[A-Za-z0-9]{13}![A-Za-z0-9._]{90,}`),
		token("okta-token", "00", `[A-Z][A-Za-z0-9_\-]{39}`),
		token("linear-key", "lin_api_", `[A-Za-z0-9]{40}`),
		token("notion-token", "ntn_", `[A-Za-z0-9]{43,50}`),
		token("notion-token", "secret_", `[A-Za-z0-9]{43}`),
		token("airtable-token", "pat", `[A-Za-z0-9]{14}\.[a-fA-F0-9]{64}`),
		token("figma-token", "figd_", `[A-Za-z0-9_\-]{40}`),
		token("typeform-token", "tfp_", `[A-Za-z0-9_.=\-]{44,59}`),
		token("contentful-token", "CFPAT-", `[A-Za-z0-9_\-]{43}`),
		token("facebook-token", "EAAC", `[A-Za-z0-9]{80,}`),
		token("facebook-token", "EAAM", `[A-Za-z0-9]{80,}`),
		token("instagram-token", "IGQV", `[A-Za-z0-9_\-]{80,}`),
		token("twitter-bearer", "AAAAAAAAAAAAAAAAAAAAA", `[A-Za-z0-9%]{60,}`),
		{kind: "mapbox-token", anchors: []string{"sk.eyj"}, re: compile(`\A(sk\.eyJ[A-Za-z0-9_\-]{50,}\.[A-Za-z0-9_\-]{22})` + end)},
		within("maxmind-key", "_mmk", 40, `[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`),
		token("adobe-secret", "p8e-", `[A-Za-z0-9_\-]{32}`),
		token("1password-token", "ops_eyJ", `[A-Za-z0-9+/]{200,}={0,3}`),
		token("1password-key", "A3-", `[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}`),
		{kind: "tailscale-key", anchors: []string{"tskey-"}, re: compile(`\A(tskey-(?:api|auth|client|scim|webhook)-[A-Za-z0-9]+-[A-Za-z0-9]{16,64})` + end)},
		{kind: "age-key", anchors: []string{"age-secret-key-"}, re: compile(`(?i)\A(AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58,})` + end)},
		{kind: "42-secret", anchors: []string{"s-s4t2"}, re: compile(`\A(s-s4t2(?:ud|af)-[a-f0-9]{64})` + end)},
		{kind: "settlemint-token", anchors: []string{"sm_aat_", "sm_pat_", "sm_sat_"}, re: compile(`\A(sm_[aps]at_[A-Za-z0-9]{16})` + end)},
		{kind: "facebook-token", anchors: []string{"|"}, before: 17, after: 40, re: compile(`(?:^|[^0-9A-Za-z])(\d{15,16}\|[A-Za-z0-9_\-]{27,40})` + end)},
		token("frameio-token", "fio-u-", `[A-Za-z0-9_=\-]{64}`),
	}
}
