package risk

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lookalikes are the letters of ASCII, each with characters that look like it, from Unicode's list of confusable
// characters (UTS 39) and the small capitals. A person or a model reads DЕLETE with a Cyrillic letter as DELETE, and
// programs that transliterate text make it one. Characters that a compatibility normalization maps are left out.
var lookalikes = [...]string{
	"aɑΑαАаᎪᗅᴀꓮ𐊠𖽀",
	"bƄʙΒβВЬвᏏᏴᑲᖯᗷᴃꓐꞴ𐊂𐊡𐌁",
	"cΣςСсᏟᴄⲤⲥꓚꮯ𐊢𐌂𐐕𐐽𐔜",
	"dĐđԁᎠᏧᑯᗞᗪᴅꓒꓓ",
	"eƐɛΕЕеэєҽᎬᴇⴹꓰꬲ𐊆𑢦𑢮",
	"fϜքᖴẝꓝꜰꞘꞙꬵ𐊇𐊥𐔥𑢢𑣂",
	"gƍɡɢԌցᏀᏳᶃꓖ",
	"hĦħʜΗНнһհᎻᏂᕼⲎꓧ𐋏",
	"iıɩɪιіᎥꙇꭵ𑣃",
	"jͿϳЈјᎫᒍᴊꓙꞲ",
	"kΚκКкᏦᛕᴋⲔꓗ𐔘",
	"lŁłʟᏞᒪⳐꓡ𐊊𐌉𐐛𐔦𑢣𑢲𖼖𖼨",
	"mΜϺМмᎷᗰᛖᴍⲘꓟ𐊰𐌑",
	"nɴΝИпոռⲚꓠ𐔓",
	"oØøΟοσОоՕօଠഠဝჿዐᴏᴑⲞⲟⵔꓳꬽ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑢵𑣈𑣗",
	"pΡρРрᏢᑭᴘⲢⲣꓑ𐊕",
	"qԛգզⵕ",
	"rƦʀЯгяᎡᏒᖇᴦⲅꓣꭇꭈꮁ𐒴𖼵",
	"sƽЅѕՏᏕᏚꓢꜱꮪ𐊖𐐠𐑈𑣁𖼺",
	"tŦŧΤτТтᎢᴛⲦꓔ𐊗𐊱𐌕𑢼𖼊",
	"uʋυцՍսሀᑌᴜꓴꞟꭎꭒ𐓎𐓶𑢸𑣘𖽂",
	"vνѴѵᏙᐯᴠⴸꓦꛟꮩ𐔝𑜆𑢠𑣀𖼈",
	"wɯωшѡԜԝաᎳᏔᴡꓪꮃ𑜊𑜎𑜏",
	"xΧХхᕁᕽᚷⲬⵝꓫꞳ𐊐𐊴𐌗𐔧",
	"yɣʏΥγУуҮүყᎩᎽᶌỿⲨꓬꭚ𐊲𑢤𑣜𖽃",
	"zΖᏃᴢꓜꮓ𑢩𑣄",
}

// either looks like an I and like an l.
const either = "ƖǀΙІӀӏᛁⲒⵏꓲ"

var asciiOf = sync.OnceValue(func() map[rune]rune {
	letters := map[rune]rune{}
	for _, line := range lookalikes {
		for _, r := range line[1:] {
			letters[r] = rune(line[0])
		}
	}
	return letters
})

// readings returns a text as it is, and as a reader of another program may see it: in one form of its characters,
// without those that nobody sees, and in ASCII.
func readings(text string) []string {
	all := []string{text}
	add := func(reading string) {
		if reading != all[len(all)-1] {
			all = append(all, reading)
		}
	}
	forms := []string{folded(text, -1)}
	if forms[0] != text { // a reader may see a gap, or none
		forms = append(forms, folded(text, ' '))
	}
	for _, reading := range forms {
		add(reading)
		if !strings.ContainsFunc(reading, func(r rune) bool { return r > unicode.MaxASCII }) {
			continue
		}
		add(inASCII(reading, 'i'))
		if strings.ContainsAny(reading, either) {
			add(inASCII(reading, 'l'))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// inASCII replaces characters with those of ASCII that look like them. A character of either becomes the given letter.
func inASCII(text string, ambiguous rune) string {
	letters := asciiOf()
	return strings.Map(func(r rune) rune {
		letter, ok := letters[r]
		switch {
		case r <= unicode.MaxASCII:
			return r
		case ok:
		case strings.ContainsRune(either, r):
			letter = ambiguous
		case unicode.Is(unicode.Mn, r): // an accent
			return -1
		case '\U0001F150' <= r && r <= '\U0001F169': // in a circle
			return 'A' + r - '\U0001F150'
		case '\U0001F170' <= r && r <= '\U0001F189': // in a square
			return 'A' + r - '\U0001F170'
		case '\U0001F1E6' <= r && r <= '\U0001F1FF': // of a flag
			return 'A' + r - '\U0001F1E6'
		case unicode.Is(unicode.Pd, r), r == '\u2212': // dashes and the minus sign
			return '-'
		case strings.ContainsRune("‘’‚‛", r):
			return '\''
		case strings.ContainsRune("“”„‟", r):
			return '"'
		default:
			return r
		}
		if unicode.IsLower(r) {
			return letter
		}
		return unicode.ToUpper(letter)
	}, norm.NFKD.String(text))
}
