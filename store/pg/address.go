package pg

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// severalHosts rewrites an address of several servers, postgres://user@a:5432,b:5433/db, as the
// driver reads it: the ports as a parameter.
func severalHosts(address string) (string, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	at := strings.LastIndex(authority, "@") + 1
	user, hosts := authority[:at], authority[at:]
	if !ok || !strings.Contains(hosts, ",") || !strings.Contains(hosts, ":") {
		return address, nil
	}
	var names, ports []string
	for host := range strings.SplitSeq(hosts, ",") {
		name, port := host, "5432"
		if strings.Contains(host, ":") {
			var err error
			if name, port, err = net.SplitHostPort(host); err != nil || name == "" || port == "" || strings.Contains(name, ":") {
				return "", fmt.Errorf("%q is no host and port of several (an IPv6 address goes as hostaddr=…,… and port=…,…)", host)
			}
		}
		names, ports = append(names, name), append(ports, port)
	}
	path, query, _ := strings.Cut(tail, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	if parameters.Has("port") {
		return "", fmt.Errorf("ports are given twice: with the hosts, and as port=")
	}
	parameters.Set("port", strings.Join(ports, ","))
	return scheme + "://" + user + strings.Join(names, ",") + path + "?" + parameters.Encode(), nil
}
