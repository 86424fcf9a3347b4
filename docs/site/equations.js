// Equations, by KaTeX: it lies beside the pages, nothing is fetched.
for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim();
  katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: false });
}
