"use strict";
// Fill the sections below the map: topics, near-duplicates, and the share of the text that the model reads.
function fillSections(corpus) {
  const byId = (id) => document.getElementById(id);
  const note = (text) => element("p", { class: "about" }, text);
  const notes = (...texts) => texts.filter(Boolean).map(note);
  const list = (entries) => element("ul", { class: "plain-list" }, ...entries.map((entry) => element("li", {}, ...entry)));
  const number = (text) => element("span", { class: "number" }, text);
  const link = (row) => element("a", { href: `#document=${row}` }, element("bdi", {}, corpus.titles[row]));
  const linkWithId = (row) => [link(row), " ", element("span", { class: "id" }, corpus.ids[row])];
  const count = (value) => value.toLocaleString("en");
  const percent = (share) => `${(100 * share).toFixed(1)}%`;

  function topicRow(name, topic) {
    const nameLink = element("a", { href: "#map", "data-topic": topic }, element("bdi", {}, name));
    const size = corpus.topics.filter((value) => value === topic).length;
    return element("tr", {}, element("td", {}, nameLink), element("td", { class: "right" }, count(size)),
      element("td", {}, list(corpus.typical[topic].map((row) => [link(row)]))));
  }

  function fillTopics() {
    const outliers = corpus.topics.filter((topic) => topic < 0).length;
    const header = ["Topic", "Documents", "Typical documents"];
    byId("topics").append(
      ...notes(`${corpus.topic_names.length} topics. Random halves of the documents, clustered separately, agree by `
        + `${corpus.agreement.toFixed(2)} (adjusted mutual information: 0 is chance, 1 is full agreement).`,
      outliers && `${count(outliers)} documents have no topic, because their halves would often land in different ones.`),
      element("div", { class: "scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, ...header.map((name, column) => element("th", column === 1 ? { class: "right" } : {}, name)))),
        element("tbody", {}, ...corpus.topic_names.map(topicRow)))),
    );
  }

  function showDifference(runs) {
    const tags = { delete: "del", insert: "ins", equal: "span", skip: "span" };
    const parts = runs.flatMap(([kind, words]) => [element(tags[kind], {}, words), " "]);
    return element("div", { class: "difference" }, ...parts.slice(0, -1));
  }

  const showPair = ([first, row, share, runs], withFirst) => [...(withFirst ? [...linkWithId(first), " and "] : []),
    ...linkWithId(row), " ", number(percent(share)), showDifference(runs)];

  function showGroup(pairs) {
    const [first] = pairs[0], size = corpus.groups.filter((group) => group === first).length;
    const heading = element("h3", {}, ...linkWithId(first), " ", number(`${count(size)} documents`));
    const more = size - 1 - pairs.length;
    return element("div", {}, heading, list(pairs.map((pair) => showPair(pair, false))), ...notes(more && `and ${count(more)} more`));
  }

  function fillDuplicates() {
    const { summary, groups, below, more_groups: moreGroups, more_below: moreBelow } = corpus.duplicates;
    byId("duplicates").append(note(summary),
      ...(groups.length ? [element("div", { class: "columns" }, ...groups.map(showGroup))] : []),
      ...notes(moreGroups && `and ${count(moreGroups)} smaller groups`),
      ...(below.length ? [element("h3", {}, "Just below"), list(below.map((pair) => showPair(pair, true)))] : []),
      ...notes(moreBelow && `and ${count(moreBelow)} more pairs`));
  }

  fillTopics();
  fillDuplicates();
  byId("trustworthiness").textContent = corpus.trustworthiness.toFixed(2);
  byId("corpus").append(...corpus.truncation.filter(Boolean).map((text) => element("p", { class: "text" }, text)),
    list(corpus.reading.split("\n").filter(Boolean).map((line) => [line])));
}
