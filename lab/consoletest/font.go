package consoletest

import "fmt"

// narrowFont is any font that the machine has, with the width and height of letters of Noto Sans:
// texts are shorter than in DejaVu Sans, so that lines break at other places and links come closer.
const narrowFont = `@font-face {
	font-family: other; src: local("DejaVu Sans"), local("Noto Sans"), local("Liberation Sans"), local("Arial");
	size-adjust: 88%; ascent-override: 107%; descent-override: 29%; line-gap-override: 0%;
} * { font-family: other, sans-serif !important; }`

// OtherFont shows the page with another font, or again with its own.
func (p *Page) OtherFont(other bool) {
	p.Helper()
	style := ""
	if other {
		style = narrowFont
	}
	Value[bool](p, fmt.Sprintf(`(async () => {
		const sheet = new CSSStyleSheet();
		sheet.replaceSync(%s);
		document.adoptedStyleSheets = [sheet];
		await document.fonts.ready;
		return true;
	})()`, quote(style)))
}
