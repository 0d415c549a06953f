// Reads maps of the cluster autoscaler's priority expander and says which node groups each leaves.
//
// One JSON object a line on standard input: {"map": TEXT, "groups": [ID, …]}. One a line on standard output:
// {"valid": false} where the map would be ignored, else {"valid": true, "best": [ID, …]}.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"

	"go.yaml.in/yaml/v2"
)

type question struct {
	Map    string   `json:"map"`
	Groups []string `json:"groups"`
}

type answer struct {
	Valid bool     `json:"valid"`
	Best  []string `json:"best"`
}

func rulesOf(text string) (map[int][]*regexp.Regexp, bool) {
	var lists map[int][]string
	if text == "" || yaml.Unmarshal([]byte(text), &lists) != nil {
		return nil, false
	}
	rules := map[int][]*regexp.Regexp{}
	for priority, patterns := range lists {
		for _, pattern := range patterns {
			compiled, err := regexp.Compile(pattern)
			if err != nil {
				return nil, false
			}
			rules[priority] = append(rules[priority], compiled)
		}
	}
	return rules, true
}

// The highest priority of a group; -1 where it has none that could win.
func priorityOf(rules map[int][]*regexp.Regexp, group string) int {
	highest := -1
	for priority, patterns := range rules {
		for _, pattern := range patterns {
			if priority > highest && pattern.MatchString(group) {
				highest = priority
			}
		}
	}
	return highest
}

func answerTo(asked question) answer {
	rules, ok := rulesOf(asked.Map)
	if !ok {
		return answer{}
	}
	highest, best := -1, []string{}
	for _, group := range asked.Groups {
		switch priority := priorityOf(rules, group); {
		case priority < 0 || priority < highest:
		case priority > highest:
			highest, best = priority, []string{group}
		default:
			best = append(best, group)
		}
	}
	if len(best) == 0 {
		best = asked.Groups
	}
	return answer{Valid: true, Best: best}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<20)
	write := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := write.Encode(answerTo(asked)); err != nil {
			panic(err)
		}
	}
}
