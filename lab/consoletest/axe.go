package consoletest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// axe returns axe-core, which checks accessibility. It is a package of npm, as those that build
// the console.
var axe = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "motorpool").Output()
	if err != nil {
		return "", fmt.Errorf("find the product's module: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "console", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		return "", fmt.Errorf("axe-core is not installed (.ci/npm console): %w", err)
	}
	return string(script), nil
})

// violation is a rule that the page breaks.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// NeedAxe skips the test where axe-core is not installed, as devstack.NeedServer does.
func (p *Page) NeedAxe() {
	p.Helper()
	_, err := axe()
	devstack.Need(p, err)
}

// Audit fails the test for each rule of WCAG 2.2 AA, and of axe's best practices, that the page
// breaks as it is now. Of a dark page it checks the colours, since all else is that of the light
// one.
func (p *Page) Audit(what string) {
	p.Helper()
	rules := `{ type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }`
	if p.dark {
		rules = `{ type: 'rule', values: ['color-contrast', 'link-in-text-block'] }`
	}
	script, err := axe()
	require.NoError(p, err)
	if there := Value[bool](p, "'axe' in window"); !there {
		if _, err := evaluate[chromedp.Void](p, script); err != nil {
			p.Fatalf("load axe-core: %v", err)
		}
	}
	broken := Value[[]violation](p, `axe.run(document, { runOnly: `+rules+`, resultTypes: ['violations'] })
		.then((r) => r.violations.map((v) => ({
		ID: v.id, Help: v.help,
		Nodes: v.nodes.map((n) => ({ HTML: n.html.slice(0, 300), FailureSummary: n.failureSummary })),
	})))`)
	for _, v := range broken {
		var places strings.Builder
		for _, node := range v.Nodes[:min(3, len(v.Nodes))] {
			fmt.Fprintf(&places, "\n  %s\n    %s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n    "))
		}
		p.Errorf("%s: %s (%s), %d times:%s", what, v.Help, v.ID, len(v.Nodes), &places)
	}
}
