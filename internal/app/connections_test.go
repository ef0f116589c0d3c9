package app

import (
	"strings"
	"testing"
)

func TestConnectionsWithin_LeavesTheReserve(t *testing.T) {
	for _, c := range []struct {
		setting, files, reserve, want int
		err                           string
	}{
		{setting: 0, files: 1024, reserve: 200, want: 824},
		{setting: 500, files: 1024, reserve: 200, want: 500},
		{setting: 825, files: 1024, reserve: 200, err: "--max-connections"},
		{setting: -1, files: 1024, reserve: 200, err: "--max-connections"},
		{setting: 0, files: 200, reserve: 200, err: "ulimit -n"},
	} {
		got, err := connectionsWithin(c.setting, c.files, c.reserve)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: got %d, %v", c, got, err)
		}
	}
}
