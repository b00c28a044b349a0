// A table whose first columns are database, direction and frame gets a choice above it for each of these.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".md-content table")) {
    const heads = [...table.querySelectorAll("thead th")].map(head => head.textContent.trim())
    if (!heads.includes("direction") || !heads.includes("frame")) continue
    const rows = [...table.querySelectorAll("tbody tr")]
    const chosen = new Map()
    const show = () => {
      for (const row of rows)
        row.hidden = [...chosen].some(([place, value]) => value && row.cells[place].textContent.trim() !== value)
    }
    const choices = document.createElement("p")
    for (const name of ["database", "direction", "frame", "values"]) {
      const place = heads.indexOf(name)
      if (place < 0) continue
      const select = document.createElement("select")
      select.setAttribute("aria-label", name)
      select.append(new Option(`any ${name}`, ""))
      for (const value of [...new Set(rows.map(row => row.cells[place].textContent.trim()))].sort())
        if (value) select.append(new Option(value))
      select.addEventListener("change", () => { chosen.set(place, select.value); show() })
      choices.append(select, " ")
    }
    choices.className = "filter"
    const whole = table.closest(".md-typeset__scrollwrap") ?? table
    whole.before(choices)
  }
})

// What the theme gives no name: its search, and the buttons of each block of code, which it adds later. A table or
// a block of code that is wider than the window is a stop of the keyboard, so that its arrows scroll it.
document.addEventListener("DOMContentLoaded", () => {
  const name = () => {
    document.querySelector(".md-search")?.setAttribute("aria-label", "Search")
    for (const [place, buttons] of document.querySelectorAll(".md-code__nav").entries())
      buttons.setAttribute("aria-label", `Code ${place + 1}`)
    for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code"))
      wrap.tabIndex = wrap.scrollWidth > wrap.clientWidth ? 0 : -1
  }
  name()
  addEventListener("resize", name)
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true })
})
