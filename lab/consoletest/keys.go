package consoletest

import (
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// named are keys that write nothing, or have no name as a text.
var named = map[string]rune{
	"Enter": '\r', "Escape": '\x1b', "Tab": '\t', "Space": ' ', "ArrowDown": []rune(kb.ArrowDown)[0], "ArrowUp": []rune(kb.ArrowUp)[0],
	"End": []rune(kb.End)[0],
}

var modifiers = map[string]kb.Modifier{"Control": kb.ModifierCtrl, "Shift": kb.ModifierShift}

// Press presses keys, one after the other: "h", "Enter", "Control+k", "Shift+Tab".
func (p *Page) Press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		modifier, name, ok := strings.Cut(key, "+")
		if !ok {
			modifier, name = "", key
		}
		code, ok := named[name]
		if !ok {
			code = []rune(name)[0]
		}
		p.key(code, modifiers[modifier], 0)
	}
}

// Type types a text into what has the focus.
func (p *Page) Type(text string) {
	p.Helper()
	for _, letter := range text {
		p.key(letter, 0, 0)
	}
}

// Hold presses a key until it has repeated 30 times, and releases it.
func (p *Page) Hold(key string) {
	p.Helper()
	p.key(named[key], 0, 30)
}

// key presses a key, which may repeat, and releases it. The text comes with the key, so that a page
// can prevent it.
func (p *Page) key(code rune, modifier kb.Modifier, repeats int) {
	p.Helper()
	events := kb.Encode(code)
	down, up := *events[0], *events[len(events)-1]
	down.Type = input.DispatchKeyEventTypeRawKeyDown
	if len(events) > 2 && modifier != kb.ModifierCtrl {
		down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, events[1].Text, events[1].UnmodifiedText
	}
	down.Modifiers |= int64(modifier)
	up.Modifiers |= int64(modifier)
	call(p, input.DispatchKeyEvent, down)
	for down.AutoRepeat = new(true); repeats > 0; repeats-- {
		call(p, input.DispatchKeyEvent, down)
	}
	call(p, input.DispatchKeyEvent, up)
}
