// Command hclparse reads JSON lines {"text": <base64>} and answers each with one JSON line: what HashiCorp's own HCL2
// parser makes of that text. It is the reference that the scanner of src/config is measured against.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

type request struct {
	Text   []byte `json:"text"`
	Tokens bool   `json:"tokens"`
}

type position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

type label struct {
	Text string   `json:"text"`
	At   position `json:"at"`
}

type item struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	At     position `json:"at"`
	Value  position `json:"value"`
	Labels []label  `json:"labels"`
	Body   []item   `json:"body"`
}

type token struct {
	Type  string `json:"type"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

type answer struct {
	OK     bool    `json:"ok"`
	Error  string  `json:"error,omitempty"`
	Body   []item  `json:"body"`
	Tokens []token `json:"tokens,omitempty"`
}

func at(pos hcl.Pos) position { return position{pos.Line, pos.Column, pos.Byte} }

func body(b *hclsyntax.Body) []item {
	items := []item{}
	for _, attribute := range b.Attributes {
		items = append(items, item{
			Kind: "attribute", Name: attribute.Name, At: at(attribute.NameRange.Start),
			Value: at(attribute.Expr.Range().Start), Labels: []label{}, Body: []item{},
		})
	}
	for _, block := range b.Blocks {
		labels := []label{}
		for i, text := range block.Labels {
			labels = append(labels, label{text, at(block.LabelRanges[i].Start)})
		}
		items = append(items, item{
			Kind: "block", Name: block.Type, At: at(block.TypeRange.Start), Labels: labels, Body: body(block.Body),
		})
	}
	sort.Slice(items, func(i, j int) bool { return items[i].At.Byte < items[j].At.Byte })
	return items
}

func parse(in request) answer {
	out := answer{Body: []item{}}
	if in.Tokens {
		tokens, _ := hclsyntax.LexConfig(in.Text, "f", hcl.InitialPos)
		for _, t := range tokens {
			out.Tokens = append(out.Tokens, token{t.Type.GoString(), t.Range.Start.Byte, t.Range.End.Byte})
		}
	}
	file, diagnostics := hclsyntax.ParseConfig(in.Text, "f", hcl.InitialPos)
	if diagnostics.HasErrors() {
		out.Error = diagnostics[0].Error()
		return out
	}
	out.OK = true
	out.Body = body(file.Body.(*hclsyntax.Body))
	return out
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	decoder, encoder := json.NewDecoder(reader), json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var in request
		if err := decoder.Decode(&in); err != nil {
			panic(err)
		}
		if err := encoder.Encode(parse(in)); err != nil {
			panic(err)
		}
	}
}
