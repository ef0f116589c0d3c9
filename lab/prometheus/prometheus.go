// Package prometheus writes the shipped configuration of Prometheus for servers of tests.
package prometheus

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"motorpool/deploy/prometheus"
)

// WriteFiles writes the shipped configuration and rules into a folder, with these targets and
// without an Alertmanager, and returns the path of the configuration. Each duration of both is
// divided by the factor.
func WriteFiles(dir string, factor int, targets ...string) (string, error) {
	text := prometheus.Config
	for _, change := range [][2]string{{`"monitoring:8081"`, `"` + strings.Join(targets, `", "`) + `"`}, {`"alertmanager:9093"`, ""}} {
		if strings.Count(text, change[0]) != 1 {
			return "", fmt.Errorf("prometheus.yml must have %s exactly once", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(Faster(text, factor)), 0o600); err != nil {
		return "", err
	}
	return file, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(Faster(prometheus.Rules, factor)), 0o600)
}

// durations matches what has a duration: a field whose value is one, and the range of a selector.
var durations = regexp.MustCompile(`(?m)^ *\w+: \d+[smhd]$|\[\d+[smhd]\]`)

var duration = regexp.MustCompile(`\d+[smhd]`)

var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// Faster returns a configuration, or rules, with each duration divided by a factor.
func Faster(text string, factor int) string {
	return durations.ReplaceAllStringFunc(text, func(place string) string {
		return duration.ReplaceAllStringFunc(place, func(d string) string {
			var n int
			_, _ = fmt.Sscan(d[:len(d)-1], &n) // digits, by the pattern
			return fmt.Sprintf("%dms", (time.Duration(n) * units[d[len(d)-1]] / time.Duration(factor)).Milliseconds())
		})
	})
}
