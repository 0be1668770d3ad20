// Shows only those fields of a form that go with what is chosen: `data-depends` names the choice, `data-shows-VALUE` the fields. Without it all are there, and the server takes those that count.
for (const form of document.querySelectorAll("form[data-depends]")) {
  const name = form.dataset.depends;
  const attribute = (value) => "data-shows-" + value;
  const fields = new Set();
  for (const { name: key, value } of form.attributes) {
    if (key.startsWith("data-shows-")) for (const each of value.split(" ")) if (each) fields.add(each);
  }
  const show = () => {
    const value = new FormData(form).get(name);
    const wanted = (form.getAttribute(attribute(value)) ?? "").split(" ");
    for (const each of fields) {
      const field = form.querySelector(".field-" + each);
      if (field) field.hidden = !wanted.includes(each);
    }
  };
  form.addEventListener("change", show);
  show();
}
