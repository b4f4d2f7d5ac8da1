package redact

// vendorNames are services that give out credentials whose form says nothing
// about them: thirty-two hexadecimal digits, say. In configurations they
// stand under the service's name.
func vendorNames() []string {
	return []string{
		"abuseipdb", "accuweather", "adafruit", "adobe_", "agora_", "airbrake", "aircall", "airtable", "airvisual", "akamai", "alchemy", "algolia",
		"ambee", "amplitude", "anthropic", "apiflash", "apify", "appcues", "appfollow", "appoptics", "appsflyer", "artifactory", "asana", "assemblyai",
		"atlassian", "auth0", "autodesk", "aviationstack", "axiom_", "azure_", "backblaze", "bamboo", "bamboohr", "bannerbear", "baremetrics", "beamer",
		"betterstack", "binance", "bitbucket", "bitfinex", "bitly", "bitmex", "bitstamp", "bittrex", "borgbase", "braintree", "branch_io", "brandfetch",
		"browserstack", "bscscan", "bugsnag", "buildkite", "bunny_", "buttercms", "bybit", "calendarific", "campaignmonitor", "censys", "chargebee",
		"chartmogul", "claude_", "clearbit", "clerk_", "clickhouse", "clicksend", "clickup", "clockify", "cloudflare", "cloudinary", "cloudsmith",
		"codacy", "codeclimate", "codecov", "cohere", "coinbase", "commercetools", "confluence", "confluent", "contentful", "contentstack", "convertkit",
		"coveralls", "cryptocompare", "currencycloud", "currencylayer", "customerio", "datadog", "deepai", "deepgram", "deepseek", "delighted", "descope",
		"detectlanguage", "dialpad", "diffbot", "digicert", "disqus", "docusign", "doppler", "dropbox", "dwolla", "dynatrace", "edamam", "elastic",
		"elasticemail", "elevenlabs", "equinix", "etherscan", "etsy", "eventbrite", "everhour", "exchangerate", "exoscale", "facebook", "fastly", "figma",
		"finicity", "finnhub", "firebase", "firecrawl", "fireworks", "flickr", "flutterwave", "foursquare", "frameio", "freshbooks", "freshdesk",
		"freshservice", "front_api", "fullstory", "geckoboard", "geoapify", "geocode", "geocodify", "geoipify", "giphy", "gitbook", "github", "gitlab",
		"gitter", "gocardless", "gorgias", "grafana", "graphhopper", "greenhouse", "groq", "gtmetrix", "gumroad", "gusto", "gyazo", "harness", "hellosign",
		"helpcrunch", "helpscout", "heroku", "hetzner", "holidayapi", "honeycomb", "hubspot", "huggingface", "hunter", "huobi", "ibm", "iexcloud",
		"imagekit", "imagga", "imgix", "infobip", "infracost", "infura", "insightly", "instagram", "instamojo", "intercom", "intra42", "intrinio", "ipapi",
		"ipgeolocation", "ipify", "ipinfo", "ipquality", "ipstack", "jenkins", "jfrog", "jira", "jotform", "jumpcloud", "kaggle", "keycloak", "kickbox",
		"klaviyo", "klipfolio", "kontent", "kraken", "kucoin", "langchain", "langfuse", "larksuite", "launchdarkly", "lemonsqueezy", "lever_", "linear_",
		"linenotify", "linkedin", "linode", "lob_", "lobtoken", "loggly", "logzio", "lokalise", "looker", "loops_", "lunchmoney", "mailchimp",
		"mailerlite", "mailgun", "mailjet", "mandrill", "mapbox", "mapquest", "marketstack", "mattermost", "maxmind", "mediastack", "meistertask",
		"meraki", "message-bird", "message_bird", "messagebird", "metabase", "minio", "mistral", "mixmax", "mixpanel", "mockaroo", "monday_", "moosend",
		"moralis", "mux_", "nasdaq", "neon_", "netlify", "neutrinoapi", "new-relic", "new_relic", "newrelic", "newsapi", "newscatcher", "newsdata",
		"nexmo", "nftport", "ngrok", "notion_", "numverify", "nutritionix", "nylas", "nytimes", "oanda", "okta", "okx_", "omnisend", "onelogin",
		"onesignal", "onfleet", "openai", "opencage", "openrouter", "openvpn", "openweather", "opsgenie", "optimizely", "ovh", "packagecloud", "packagist",
		"packet_", "pagerduty", "pandadoc", "pandascore", "parsehub", "pastebin", "paymongo", "paypal", "paystack", "pdfshift", "perplexity",
		"phabricator", "phraseapp", "pinata", "pinecone", "pingdom", "pipedream", "pipedrive", "pivotaltracker", "pixabay", "plaid", "planetscale",
		"planview", "planyo", "plivo", "podio", "poloniex", "positionstack", "posthog", "postman", "postmark", "privacy_com", "pubnub", "pushbullet",
		"pusher", "pushover", "qase", "qdrant", "quickbooks", "quicknode", "quip", "railway", "rapidapi", "rawg", "razorpay", "rebrandly", "recharge",
		"recurly", "reddit", "render_", "replicate", "resend", "ringcentral", "ritekit", "robinhood", "rocketreach", "rollbar", "salesblink", "salesforce",
		"sauce", "saucelabs", "scaleway", "scalingo", "scraperapi", "scrapestack", "scrapfly", "scrapingant", "scrapingbee", "screenshotapi",
		"screenshotlayer", "scrutinizer", "securitytrails", "sendbird", "sendgrid", "sendinblue", "sentry", "serpapi", "serphouse", "serpstack",
		"servicenow", "shippo", "shodan", "shopify", "shotstack", "shutterstock", "signalwire", "signaturit", "sigopt", "sinch", "skrapp", "slack",
		"smartsheet", "smartystreets", "smooch", "snipcart", "snyk", "sonar", "sonarcloud", "sourcegraph", "sparkpost", "splunk", "spoonacular", "spotify",
		"square_", "squarespace", "squareup", "stability", "statsig", "statuscake", "statuspage", "storyblok", "strava", "stripe", "stytch", "sumo_",
		"sumologic", "sumotoken", "supabase", "supertokens", "swiftype", "tailscale", "tavily", "taxjar", "teamwork", "telegram", "telesign", "telnyx",
		"terraform", "thinkific", "thousandeyes", "ticketmaster", "tiingo", "timecamp", "todoist", "together", "toggl", "tomorrowio", "tomtom", "tradier",
		"transferwise", "travelpayouts", "travis", "trello", "turso", "twelvedata", "twilio", "twitch", "twitter", "tyntec", "typeform", "ubidots",
		"unsplash", "uploadcare", "upstash", "uptimerobot", "urlscan", "userstack", "vault_", "vercel", "veriphone", "virustotal", "visualcrossing",
		"voyage", "vpnapi", "vultr", "wakatime", "wasabi", "wavefront", "weatherbit", "weatherstack", "weaviate", "webex", "webflow", "wepay", "wistia",
		"wit_ai", "witai", "workable", "workday", "workos", "wrike", "xero", "yandex", "yelp", "ynab", "yousign", "zapier", "zendesk", "zenscrape",
		"zeplin", "zerobounce", "zerotier", "zoho", "zoom_", "zulip",
	}
}
