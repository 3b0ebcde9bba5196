#include "base/regex_class.h"

#include "base/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct ascii_class {
	const char *name;
	const char *ranges; /* pairs of low and high, ascending */
	size_t nranges;
};

#define RANGES(text) text, (sizeof(text) - 1) / 2

static const struct ascii_class perl_classes[] = {
	{ "d", RANGES("09") },
	{ "s", RANGES("\t\n\f\r  ") },
	{ "w", RANGES("09AZ__az") },
};

static const struct ascii_class posix_classes[] = {
	{ "alnum", RANGES("09AZaz") },
	{ "alpha", RANGES("AZaz") },
	{ "ascii", RANGES("\x00\x7f") },
	{ "blank", RANGES("\t\t  ") },
	{ "cntrl", RANGES("\x00\x1f\x7f\x7f") },
	{ "digit", RANGES("09") },
	{ "graph", RANGES("!~") },
	{ "lower", RANGES("az") },
	{ "print", RANGES(" ~") },
	{ "punct", RANGES("!/:@[`{~") },
	{ "space", RANGES("\t\r  ") },
	{ "upper", RANGES("AZ") },
	{ "word", RANGES("09AZ__az") },
	{ "xdigit", RANGES("09AFaf") },
};

/* Go's categories, but for C: see add_category_c. */
static const char *const categories[] = {
	"Cc", "Cf", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc",
	"Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
	"Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",	"Zl", "Zp", "Zs",
};

/* "sc:", because PCRE2 takes a bare name for the script extensions. */
static const char *const scripts[] = {
	"sc:Adlam",
	"sc:Ahom",
	"sc:Anatolian_Hieroglyphs",
	"sc:Arabic",
	"sc:Armenian",
	"sc:Avestan",
	"sc:Balinese",
	"sc:Bamum",
	"sc:Bassa_Vah",
	"sc:Batak",
	"sc:Bengali",
	"sc:Bhaiksuki",
	"sc:Bopomofo",
	"sc:Brahmi",
	"sc:Braille",
	"sc:Buginese",
	"sc:Buhid",
	"sc:Canadian_Aboriginal",
	"sc:Carian",
	"sc:Caucasian_Albanian",
	"sc:Chakma",
	"sc:Cham",
	"sc:Cherokee",
	"sc:Chorasmian",
	"sc:Common",
	"sc:Coptic",
	"sc:Cuneiform",
	"sc:Cypriot",
	"sc:Cypro_Minoan",
	"sc:Cyrillic",
	"sc:Deseret",
	"sc:Devanagari",
	"sc:Dives_Akuru",
	"sc:Dogra",
	"sc:Duployan",
	"sc:Egyptian_Hieroglyphs",
	"sc:Elbasan",
	"sc:Elymaic",
	"sc:Ethiopic",
	"sc:Georgian",
	"sc:Glagolitic",
	"sc:Gothic",
	"sc:Grantha",
	"sc:Greek",
	"sc:Gujarati",
	"sc:Gunjala_Gondi",
	"sc:Gurmukhi",
	"sc:Han",
	"sc:Hangul",
	"sc:Hanifi_Rohingya",
	"sc:Hanunoo",
	"sc:Hatran",
	"sc:Hebrew",
	"sc:Hiragana",
	"sc:Imperial_Aramaic",
	"sc:Inherited",
	"sc:Inscriptional_Pahlavi",
	"sc:Inscriptional_Parthian",
	"sc:Javanese",
	"sc:Kaithi",
	"sc:Kannada",
	"sc:Katakana",
	"sc:Kayah_Li",
	"sc:Kharoshthi",
	"sc:Khitan_Small_Script",
	"sc:Khmer",
	"sc:Khojki",
	"sc:Khudawadi",
	"sc:Lao",
	"sc:Latin",
	"sc:Lepcha",
	"sc:Limbu",
	"sc:Linear_A",
	"sc:Linear_B",
	"sc:Lisu",
	"sc:Lycian",
	"sc:Lydian",
	"sc:Mahajani",
	"sc:Makasar",
	"sc:Malayalam",
	"sc:Mandaic",
	"sc:Manichaean",
	"sc:Marchen",
	"sc:Masaram_Gondi",
	"sc:Medefaidrin",
	"sc:Meetei_Mayek",
	"sc:Mende_Kikakui",
	"sc:Meroitic_Cursive",
	"sc:Meroitic_Hieroglyphs",
	"sc:Miao",
	"sc:Modi",
	"sc:Mongolian",
	"sc:Mro",
	"sc:Multani",
	"sc:Myanmar",
	"sc:Nabataean",
	"sc:Nandinagari",
	"sc:New_Tai_Lue",
	"sc:Newa",
	"sc:Nko",
	"sc:Nushu",
	"sc:Nyiakeng_Puachue_Hmong",
	"sc:Ogham",
	"sc:Ol_Chiki",
	"sc:Old_Hungarian",
	"sc:Old_Italic",
	"sc:Old_North_Arabian",
	"sc:Old_Permic",
	"sc:Old_Persian",
	"sc:Old_Sogdian",
	"sc:Old_South_Arabian",
	"sc:Old_Turkic",
	"sc:Old_Uyghur",
	"sc:Oriya",
	"sc:Osage",
	"sc:Osmanya",
	"sc:Pahawh_Hmong",
	"sc:Palmyrene",
	"sc:Pau_Cin_Hau",
	"sc:Phags_Pa",
	"sc:Phoenician",
	"sc:Psalter_Pahlavi",
	"sc:Rejang",
	"sc:Runic",
	"sc:Samaritan",
	"sc:Saurashtra",
	"sc:Sharada",
	"sc:Shavian",
	"sc:Siddham",
	"sc:SignWriting",
	"sc:Sinhala",
	"sc:Sogdian",
	"sc:Sora_Sompeng",
	"sc:Soyombo",
	"sc:Sundanese",
	"sc:Syloti_Nagri",
	"sc:Syriac",
	"sc:Tagalog",
	"sc:Tagbanwa",
	"sc:Tai_Le",
	"sc:Tai_Tham",
	"sc:Tai_Viet",
	"sc:Takri",
	"sc:Tamil",
	"sc:Tangsa",
	"sc:Tangut",
	"sc:Telugu",
	"sc:Thaana",
	"sc:Thai",
	"sc:Tibetan",
	"sc:Tifinagh",
	"sc:Tirhuta",
	"sc:Toto",
	"sc:Ugaritic",
	"sc:Vai",
	"sc:Vithkuqi",
	"sc:Wancho",
	"sc:Warang_Citi",
	"sc:Yezidi",
	"sc:Yi",
	"sc:Zanabazar_Square",
};

void regex_add_range(struct regex_items *items, uint32_t low, uint32_t high)
{
	vec_push(items, (struct regex_item){ .low = low, .high = high });
}

static void add_exact(struct regex_items *items, uint32_t low, uint32_t high)
{
	if (low <= high)
		vec_push(items, (struct regex_item){ .low = low, .high = high, .exact = true });
}

static bool contains(const struct ascii_class *c, char byte)
{
	for (size_t i = 0; i < c->nranges; i++) {
		if (byte >= c->ranges[2 * i] && byte <= c->ranges[2 * i + 1])
			return true;
	}
	return false;
}

/* All that is not in the class. Ignoring case the class grows before it is negated: by the other
 * case of its letters, and by the two characters outside ASCII that are letters of ASCII in another
 * case. */
static void add_negated(struct regex_items *items, const struct ascii_class *c, bool fold)
{
	static const uint32_t long_s = 0x17f, kelvin = 0x212a;
	uint32_t low = 0;

	for (uint32_t b = 0; b < 0x80; b++) {
		bool letter = (b | 0x20) >= 'a' && (b | 0x20) <= 'z';

		if (contains(c, (char)b) || (fold && letter && contains(c, (char)(b ^ 0x20)))) {
			add_exact(items, low, b - 1);
			low = b + 1;
		}
	}
	if (fold && (contains(c, 's') || contains(c, 'S'))) {
		add_exact(items, low, long_s - 1);
		low = long_s + 1;
	}
	if (fold && (contains(c, 'k') || contains(c, 'K'))) {
		add_exact(items, low, kelvin - 1);
		low = kelvin + 1;
	}
	add_exact(items, low, UTF8_MAX);
}

static void add_ascii(struct regex_items *items, const struct ascii_class *c, bool negated,
		      bool fold)
{
	if (negated) {
		add_negated(items, c, fold);
		return;
	}
	for (size_t i = 0; i < c->nranges; i++)
		regex_add_range(items, (unsigned char)c->ranges[2 * i],
				(unsigned char)c->ranges[2 * i + 1]);
}

bool regex_add_perl(struct regex_items *items, char letter, bool fold)
{
	for (size_t i = 0; i < COUNT(perl_classes); i++) {
		if ((letter | 0x20) == perl_classes[i].name[0]) {
			add_ascii(items, &perl_classes[i], !(letter & 0x20), fold);
			return true;
		}
	}
	return false;
}

bool regex_add_posix(struct regex_items *items, struct str name, bool fold)
{
	struct str bare = { name.p + 2, name.n - 4 };
	bool negated = bare.n > 0 && bare.p[0] == '^';

	if (negated)
		bare = str_from(bare, 1);
	for (size_t i = 0; i < COUNT(posix_classes); i++) {
		if (str_eq(bare, str_of(posix_classes[i].name))) {
			add_ascii(items, &posix_classes[i], negated, fold);
			return true;
		}
	}
	return false;
}

static const char *find_property(struct str name)
{
	for (size_t i = 0; i < COUNT(categories); i++) {
		if (str_eq(name, str_of(categories[i])))
			return categories[i];
	}
	for (size_t i = 0; i < COUNT(scripts); i++) {
		if (str_eq(name, str_of(scripts[i] + strlen("sc:"))))
			return scripts[i];
	}
	return NULL;
}

static void add_property(struct regex_items *items, const char *property, bool negated)
{
	vec_push(items,
		 (struct regex_item){ .property = property, .negated = negated, .exact = true });
}

/* Go's C is without the code points that are not assigned, PCRE2's is with them. */
static void add_category_c(struct regex_items *items, bool negated)
{
	if (negated) {
		add_property(items, "C", true);
		add_property(items, "Cn", false);
		return;
	}
	add_property(items, "Cc", false);
	add_property(items, "Cf", false);
	add_property(items, "Co", false);
}

/* Go adds to a set the other case of each of its characters. Almost all sets have it already; these
 * have not. Capital and small letters become both, which differs from Go in the small letters that
 * have no capital. Returns the property to use. */
static const char *add_other_case(struct regex_items *items, const char *property)
{
	static const struct {
		const char *property;
		uint32_t others[3];
	} open_sets[] = {
		{ "L", { 0x345 } },
		{ "M", { 0x399, 0x3b9, 0x1fbe } },
		{ "Mn", { 0x399, 0x3b9, 0x1fbe } },
		{ "sc:Common", { 0x39c, 0x3bc } },
		{ "sc:Greek", { 0xb5, 0x345 } },
		{ "sc:Inherited", { 0x399, 0x3b9, 0x1fbe } },
	};

	if (strcmp(property, "Lu") == 0 || strcmp(property, "Ll") == 0)
		return "L&";
	for (size_t i = 0; i < COUNT(open_sets); i++) {
		if (strcmp(property, open_sets[i].property) != 0)
			continue;
		for (size_t j = 0; j < COUNT(open_sets[i].others) && open_sets[i].others[j]; j++)
			add_exact(items, open_sets[i].others[j], open_sets[i].others[j]);
	}
	return property;
}

bool regex_add_unicode(struct regex_items *items, struct str name, bool negated, bool fold)
{
	const char *property = find_property(name);

	if (str_eq(name, STR("Any"))) {
		if (!negated)
			add_exact(items, 0, UTF8_MAX);
		return true;
	}
	if (str_eq(name, STR("C"))) {
		add_category_c(items, negated);
		return true;
	}
	if (!property)
		return false;
	if (fold && !negated)
		property = add_other_case(items, property);
	add_property(items, property, negated);
	return true;
}
