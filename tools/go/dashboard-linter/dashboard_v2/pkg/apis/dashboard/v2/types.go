// Package v2 has what dashboard-linter reads of Grafana's dashboards of version 2, and nothing more.
//
// It stands in for github.com/grafana/grafana/apps/dashboard, which the Go module proxy does not have for everybody and
// which brings most of Grafana along. The names are that package's; the shape is that of the JSON which
// grafana-foundation-sdk writes (its models/dashboardv2). jaxobs' tests hold that each rule sees what it looks at.
package v2

import (
	"encoding/json"
	"fmt"
)

type DashboardSpec struct {
	Title       string                         `json:"title"`
	Editable    *bool                          `json:"editable,omitempty"`
	Annotations []DashboardAnnotationQueryKind `json:"annotations"`
	Variables   []DashboardVariableKind        `json:"variables"`
	Elements    map[string]DashboardElement    `json:"elements"`
}

// DashboardElement is a panel of the dashboard's own, or one of the library, of which nothing is read.
type DashboardElement struct {
	PanelKind *DashboardPanelKind
}

func (element *DashboardElement) UnmarshalJSON(raw []byte) error {
	kind, err := kindOf(raw)
	if err != nil {
		return err
	}
	switch kind {
	case "Panel":
		element.PanelKind = new(DashboardPanelKind)
		return json.Unmarshal(raw, element.PanelKind)
	case "LibraryPanel":
		return nil
	}
	return fmt.Errorf("an element of the unknown kind %q", kind)
}

type DashboardPanelKind struct {
	Spec DashboardPanelSpec `json:"spec"`
}

type DashboardPanelSpec struct {
	Id          float64                 `json:"id"`
	Title       string                  `json:"title"`
	Description string                  `json:"description"`
	Data        DashboardQueryGroupKind `json:"data"`
	VizConfig   DashboardVizConfigKind  `json:"vizConfig"`
}

type DashboardQueryGroupKind struct {
	Spec DashboardQueryGroupSpec `json:"spec"`
}

type DashboardQueryGroupSpec struct {
	Queries []DashboardPanelQueryKind `json:"queries"`
}

type DashboardPanelQueryKind struct {
	Spec DashboardPanelQuerySpec `json:"spec"`
}

type DashboardPanelQuerySpec struct {
	Query  DashboardDataQueryKind `json:"query"`
	RefId  string                 `json:"refId"`
	Hidden bool                   `json:"hidden"`
}

type DashboardDataQueryKind struct {
	Group      string                            `json:"group"`
	Datasource *DashboardDataQueryKindDatasource `json:"datasource,omitempty"`
	Spec       map[string]any                    `json:"spec"`
}

type DashboardDataQueryKindDatasource struct {
	Name *string `json:"name,omitempty"`
}

// DashboardVizConfigKind keeps options and fieldConfig as they are: the linter writes them as JSON again.
type DashboardVizConfigKind struct {
	Group string                 `json:"group"`
	Spec  DashboardVizConfigSpec `json:"spec"`
}

type DashboardVizConfigSpec struct {
	Options     map[string]any `json:"options"`
	FieldConfig map[string]any `json:"fieldConfig"`
}

type DashboardAnnotationQueryKind struct {
	Spec DashboardAnnotationQuerySpec `json:"spec"`
}

type DashboardAnnotationQuerySpec struct {
	Query DashboardDataQueryKind `json:"query"`
	Name  string                 `json:"name"`
}

type DashboardVariableRefresh string

const (
	DashboardVariableRefreshNever              DashboardVariableRefresh = "never"
	DashboardVariableRefreshOnDashboardLoad    DashboardVariableRefresh = "onDashboardLoad"
	DashboardVariableRefreshOnTimeRangeChanged DashboardVariableRefresh = "onTimeRangeChanged"
)

// DashboardVariableKind is one of the kinds of variables.
type DashboardVariableKind struct {
	QueryVariableKind      *DashboardQueryVariableKind
	DatasourceVariableKind *DashboardDatasourceVariableKind
	CustomVariableKind     *DashboardVariableWithQueryKind
	IntervalVariableKind   *DashboardVariableWithQueryKind
	ConstantVariableKind   *DashboardVariableWithQueryKind
	TextVariableKind       *DashboardVariableWithQueryKind
	AdhocVariableKind      *DashboardVariableWithQueryKind
	GroupByVariableKind    *DashboardVariableWithQueryKind
	SwitchVariableKind     *DashboardVariableWithQueryKind
}

func (variable *DashboardVariableKind) UnmarshalJSON(raw []byte) error {
	kind, err := kindOf(raw)
	if err != nil {
		return err
	}
	plain := map[string]**DashboardVariableWithQueryKind{
		"CustomVariable":   &variable.CustomVariableKind,
		"IntervalVariable": &variable.IntervalVariableKind,
		"ConstantVariable": &variable.ConstantVariableKind,
		"TextVariable":     &variable.TextVariableKind,
		"AdhocVariable":    &variable.AdhocVariableKind,
		"GroupByVariable":  &variable.GroupByVariableKind,
		"SwitchVariable":   &variable.SwitchVariableKind,
	}
	switch place, found := plain[kind]; {
	case found:
		*place = new(DashboardVariableWithQueryKind)
		return json.Unmarshal(raw, *place)
	case kind == "QueryVariable":
		variable.QueryVariableKind = new(DashboardQueryVariableKind)
		return json.Unmarshal(raw, variable.QueryVariableKind)
	case kind == "DatasourceVariable":
		variable.DatasourceVariableKind = new(DashboardDatasourceVariableKind)
		return json.Unmarshal(raw, variable.DatasourceVariableKind)
	}
	return fmt.Errorf("a variable of the unknown kind %q", kind)
}

type DashboardQueryVariableKind struct {
	Spec DashboardQueryVariableSpec `json:"spec"`
}

type DashboardQueryVariableSpec struct {
	Name     string                   `json:"name"`
	Label    *string                  `json:"label,omitempty"`
	Multi    bool                     `json:"multi"`
	AllValue *string                  `json:"allValue,omitempty"`
	Refresh  DashboardVariableRefresh `json:"refresh"`
	Query    DashboardDataQueryKind   `json:"query"`
}

type DashboardDatasourceVariableKind struct {
	Spec DashboardDatasourceVariableSpec `json:"spec"`
}

type DashboardDatasourceVariableSpec struct {
	Name     string                   `json:"name"`
	Label    *string                  `json:"label,omitempty"`
	Multi    bool                     `json:"multi"`
	AllValue *string                  `json:"allValue,omitempty"`
	Refresh  DashboardVariableRefresh `json:"refresh"`
	PluginId string                   `json:"pluginId"`
}

type DashboardVariableWithQueryKind struct {
	Spec DashboardVariableWithQuerySpec `json:"spec"`
}

type DashboardVariableWithQuerySpec struct {
	Name     string  `json:"name"`
	Label    *string `json:"label,omitempty"`
	Multi    bool    `json:"multi"`
	AllValue *string `json:"allValue,omitempty"`
	Query    string  `json:"query"`
}

func kindOf(raw []byte) (string, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	err := json.Unmarshal(raw, &head)
	return head.Kind, err
}
