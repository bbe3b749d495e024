// The page's components: what Gradio gives each of them (its element, its value, its events) goes to its part of the
// scripts. Only the page has this file; the exported one mounts its player itself.

// A value is text; Gradio may tell of the same one twice.
function receiving(props, watch, receive) {
  let last = null;
  const take = () => {
    if (typeof props.value !== 'string' || !props.value || props.value === last) return;
    last = props.value;
    receive(props.value);
  };
  take();
  watch('value', take);
}

function component(mount, root) {
  return (element, props, watch, emit) => {
    const part = mount(element.querySelector(root) || element, emit);
    receiving(props, watch, text => part.receive(JSON.parse(text)));
  };
}

window.eagle2 = {
  player: component(mount, '.eagle-player'),
  chat: component(mountChat, '.eagle-chat'),
  chart: component(mountChart, '.eagle-chart'),
  picker: component(mountPicker, '.eagle-picker'),
  // Passes on the events that the component has; others are the part's own business.
  events: (trigger, ...names) => (name, detail) => { if (names.includes(name)) trigger(name, detail); },
  lesson: (element, steps) => mountLesson(element.querySelector('.es-lesson-root') || element, steps),
};

// Plotly lies beside this file; figures wait for it.
{
  const plotly = document.createElement('script');
  plotly.src = new URL(CONFIG.plotly, document.currentScript.src);
  document.head.append(plotly);
}
